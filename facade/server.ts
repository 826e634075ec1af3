import type { SvidSource } from "../clients/spiffe/workload_api.ts";
import type { Gitea } from "../controller/gitea.ts";
import type { ExecutorEvents } from "../controller/offers.ts";
import type { Recorder } from "../controller/recorder.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { randomHex } from "../lib/random_hex.ts";
import { createTaskGroup } from "../lib/task_group.ts";
import type { PeerReader } from "./access.ts";
import type { Capabilities } from "./capability.ts";
import type { CallObserver } from "./call_observer.ts";
import { createListener, type RequestBounds } from "./listener.ts";
import { createRegistry, type Registry } from "./registry.ts";
import { createRelay, type Relay } from "./relay.ts";
import { sealPatiently } from "./seal.ts";
import { type SelfTest, selfTest } from "./startup_check.ts";
import { createTlsServer } from "./tls_server.ts";

/** What {@link createFacade} needs. */
export interface FacadeDeps {
  readonly svids: SvidSource;
  /** Without `spiffe://`. */
  readonly trustDomain: string;
  readonly gitea: Gitea;
  readonly events: ExecutorEvents;
  readonly capabilities: Capabilities;
  readonly recorder: Recorder;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Is told of executors' calls, for traces. */
  readonly onCall?: CallObserver | undefined;
  /** In [0, 1); `Math.random` by default. */
  readonly random?: () => number;
  /** For tests of odd TLS libraries; the socket's own certificate by default. */
  readonly readPeer?: PeerReader;
}

/** Where to listen, and bounds. */
export interface FacadeOptions extends RequestBounds {
  /** Empty = every IPv4 address, `::` = every address. */
  readonly hostname: string;
  /** 0 = any. */
  readonly port: number;
  /** Ends the wait for the first SVID, and later the facade's own work. */
  readonly signal: AbortSignal;
  /** Of one SPIFFE ID; 4,096. */
  readonly maxConnections?: number;
}

/** How the facade does, for the page of health. */
export interface FacadeStatus {
  readonly port: number;
  readonly connections: number;
  readonly offered: number;
  readonly claimed: number;
  readonly selfTest: SelfTest;
  /** Of the certificate in use, milliseconds since the epoch. */
  readonly certificateExpiresAt: number;
}

/** The door for executors. Disposing closes every connection. */
export interface Facade extends AsyncDisposable {
  readonly port: number;
  /** What the controller lays out here. */
  readonly offers: Registry;
  /** Gitea's header of capabilities, from the latest Declare. */
  setDeclared(header: string | null): void;
  status(): FacadeStatus;
}

const SWEEP_EVERY_MS = 10_000;

/**
 * Starts the facade: RunnerService and the gate's own calls over TLS 1.3 with our SVID, for clients
 * that have one of the same trust domain; HTTP/2 and HTTP/1.1. Resolves when it listens and its self
 * test has passed. New SVIDs and bundles serve new connections; open ones stay.
 *
 * Throws when it cannot listen, when the self test fails, or the signal's reason before the first SVID.
 */
export async function createFacade(deps: FacadeDeps, options: FacadeOptions): Promise<Facade> {
  const { svids, recorder, clock, trustDomain } = deps;
  const logger = deps.logger.child({ component: "facade" });
  await using setup = new AsyncDisposableStack();
  const first = await svids.ready(options.signal);
  let svid = svids.current() ?? first;
  const tasks = setup.use(createTaskGroup(logger, options.signal));
  const sealLater = (relay: Relay) =>
    tasks.spawn("seal log", (signal) => sealPatiently(relay, { ...deps, signal }));
  const registry = createRegistry({
    clock,
    relayFor: (info, offset) => createRelay({ ...deps, logger }, info, offset),
    ended: (_info, relay) => sealLater(relay),
  });
  let declared: string | null = null;
  const nonce = randomHex(16);
  const listener = createListener({
    ...deps,
    registry,
    logger,
    tasks,
    nonce,
    declared: () => declared,
    exited: sealLater,
  }, options);
  const { maxConnections } = options;
  const server = setup.use(createTlsServer(listener, {
    svid,
    trustDomain,
    logger,
    ...(maxConnections === undefined ? {} : { maxConnections }),
  }));
  recorder.svidExpiry(svid.expiresAt);
  // Before anything is waited for: one that comes meanwhile would be missed, and the next is late.
  setup.use(svids.subscribe((next) => {
    svid = next;
    server.rotate(next);
    recorder.svidExpiry(next.expiresAt);
    logger.info("facade certificate rotated", {
      serial: next.serial,
      expiresAt: new Date(next.expiresAt),
    });
  }));
  const port = await server.listen(options);

  const host = SELF[options.hostname] ?? options.hostname;
  const tested = { at: clock.now(), ...await selfTest({ host, port, svid, nonce }) };
  tasks.spawn("sweep registry", async (signal) => {
    while (!signal.aborted) {
      await clock.sleep(SWEEP_EVERY_MS, signal);
      registry.sweep();
    }
  });
  logger.info("facade listens", { port, spiffeId: svid.spiffeId });

  const opened = setup.move();
  return {
    port,
    offers: registry,
    setDeclared(header) {
      declared = header;
    },
    status: () => ({
      port,
      connections: server.connections,
      ...registry.count(),
      selfTest: tested,
      certificateExpiresAt: svid.expiresAt,
    }),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** Where a listener on every address is reached from here. */
const SELF: Readonly<Record<string, string>> = {
  "": "127.0.0.1",
  "0.0.0.0": "127.0.0.1",
  "::": "[::1]",
};
