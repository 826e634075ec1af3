import { Buffer } from "node:buffer";
import { timingSafeEqual } from "node:crypto";
import http2 from "node:http2";
import type { AddressInfo } from "node:net";
import type { Clock } from "../lib/clock.ts";
import { deferDestroy } from "../lib/http2_session.ts";
import type { Logger } from "../lib/logger.ts";
import { randomHex } from "../lib/random_hex.ts";
import { retryForever } from "../lib/retry.ts";
import { createTaskGroup } from "../lib/task_group.ts";
import {
  Code,
  ConnectError,
  createContextKey,
  createContextValues,
  type HandlerContext,
} from "../clients/connect/error.ts";
import {
  connectHandler,
  type NodeRequest,
  type NodeResponse,
} from "../clients/connect/node_handler.ts";
import type { Svid, SvidSource } from "../clients/spiffe/workload_api.ts";
import { type Gitea, GiteaError } from "../controller/gitea.ts";
import type { ExecutorEvents } from "../controller/offers.ts";
import type { Recorder } from "../controller/recorder.ts";
import { type Access, EXPIRED, judgeAccess, type PeerReader, readPeer } from "./access.ts";
import { callErrors } from "./call_errors.ts";
import { type Caller, createAuthenticator } from "./caller.ts";
import type { Capabilities } from "./capability.ts";
import { executorCalls } from "./executor_calls.ts";
import { boundBody, type Connections, createConnections } from "./connections.ts";
import { createPeerLimits, DEFAULT_LIMITS, type LimitOptions } from "./limits.ts";
import { createQuietLogger } from "./quiet_logger.ts";
import { createRegistry, type Registry } from "./registry.ts";
import { createRelay, type Relay } from "./relay.ts";
import { runnerService } from "./runner_service.ts";
import { SELF_TEST, type SelfTest, selfTest } from "./startup_check.ts";

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
  /** In [0, 1); `Math.random` by default. */
  readonly random?: () => number;
  /** For tests of odd TLS libraries; the socket's own certificate by default. */
  readonly readPeer?: PeerReader;
}

/** Where to listen, and bounds. */
export interface FacadeOptions {
  /** Empty = every IPv4 address, `::` = every address. */
  readonly hostname: string;
  /** 0 = any. */
  readonly port: number;
  /** Ends the wait for the first SVID, and later the facade's own work. */
  readonly signal: AbortSignal;
  /** Largest message, bytes, also when unpacked. */
  readonly readMaxBytes?: number;
  readonly limits?: LimitOptions;
  /** From a request's head to the end of its body, milliseconds; 30 s. */
  readonly bodyMs?: number;
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

/** 100 rows of 64 KiB, or an output of 1 MiB, fit with room to spare (field reports). */
const READ_MAX_BYTES = 8 * 1024 * 1024;
/** Of one message: 5,000 log rows, decoded in some milliseconds. A gate sends at most 1,000. */
const MAX_FIELDS = 25_000;
const STREAMS_PER_CONNECTION = 32;
const HANDSHAKE_MS = 10_000;
const BODY_MS = 30_000;
const SWEEP_EVERY_MS = 10_000;
/** As long as a gate goes on delivering. */
const SEAL_MS = 3_600_000;
const SEAL_RETRY = { firstMs: 1_000, maxMs: 60_000 };

/**
 * Starts the facade: RunnerService and the gate's own calls over TLS 1.3 with our SVID, for clients
 * that have one of the same trust domain; HTTP/2 and HTTP/1.1. Resolves when it listens and its self
 * test has passed. New SVIDs and bundles serve new connections; open ones stay.
 *
 * Throws when it cannot listen, when the self test fails, or the signal's reason before the first SVID.
 */
export async function createFacade(deps: FacadeDeps, options: FacadeOptions): Promise<Facade> {
  const { svids, events, gitea, recorder, clock } = deps;
  const logger = deps.logger.child({ component: "facade" });
  // Of what callers cause.
  const callers = createQuietLogger(logger, clock);
  await using setup = new AsyncDisposableStack();
  let svid = await svids.ready(options.signal);
  const tasks = setup.use(createTaskGroup(logger, options.signal));
  const sealLater = (relay: Relay) =>
    tasks.spawn("seal log", (signal) => sealPatiently(relay, { ...deps, signal }));
  const registry = createRegistry({
    clock,
    relayFor: (info, offset) => createRelay({ gitea, events, clock, logger }, info, offset),
    ended: (_info, relay) => sealLater(relay),
  });
  const authenticator = createAuthenticator(deps);
  const limits = createPeerLimits(clock, options.limits ?? DEFAULT_LIMITS);
  const nonce = randomHex(16);
  let declared: string | null = null;

  const judged = new WeakMap<NodeRequest, Access>();
  const accessOf = (request: NodeRequest): Access =>
    judged.get(request) ?? { kind: "refused", why: "the request was not judged" };
  const answerExecutor = executorCalls({
    registry,
    events,
    recorder,
    clock,
    logger: callers,
    exited: sealLater,
  });
  const answerRunner = connectHandler(
    runnerService({
      registry,
      events,
      clock,
      logger: callers,
      caller: callerOf,
      declared: () => declared,
    }),
    {
      readMaxBytes: options.readMaxBytes ?? READ_MAX_BYTES,
      maxFields: MAX_FIELDS,
      contextValues: (request) => createContextValues().set(ACCESS, accessOf(request)),
      gate: (context) => admit(context, { logger: callers, recorder }),
      interceptors: [callErrors({ logger: callers, recorder, clock })],
      shutdownSignal: tasks.signal,
      fallback(request, response) {
        tasks.spawn("executor's call", () => answerExecutor(request, response, accessOf(request)));
      },
      onError: (error, path) => logger.debug("answer not delivered", { path, error }),
    },
  );
  const answer = (request: NodeRequest, response: NodeResponse) => {
    boundBody(request, response, { clock, ms: options.bodyMs ?? BODY_MS });
    const access = judgeAccess(request, response, {
      authenticator,
      limits,
      clock,
      readPeer: deps.readPeer ?? readPeer,
    });
    judged.set(request, access);
    if (request.url === SELF_TEST.path && isNonce(request.headers[SELF_TEST.header], nonce)) {
      response.statusCode = access.kind === "peer" ? 204 : 403;
      response.end();
      return;
    }
    answerRunner(request, response);
  };

  const server = http2.createSecureServer({
    allowHTTP1: true,
    minVersion: "TLSv1.3",
    requestCert: true,
    rejectUnauthorized: true,
    handshakeTimeout: HANDSHAKE_MS,
    settings: { maxConcurrentStreams: STREAMS_PER_CONNECTION },
    ...tlsOf(svid),
  }, answer);
  const connections = createConnections({
    trustDomain: deps.trustDomain,
    ...(options.maxConnections === undefined ? {} : { most: options.maxConnections }),
  });
  server.on("secureConnection", (socket) => {
    // A client that vanishes must never become an uncaught error.
    socket.on("error", (error: unknown) => logger.debug("connection failed", { error }));
    connections.add(socket);
  });
  server.on("session", deferDestroy);
  server.on("tlsClientError", (error) => logger.debug("TLS refused", { error }));
  server.on("sessionError", (error) => logger.debug("HTTP/2 session failed", { error }));
  setup.defer(() => close(server, connections));
  const port = await listen(server, options);

  recorder.svidExpiry(svid.expiresAt);
  setup.use(svids.subscribe((next) => {
    svid = next;
    server.setSecureContext(tlsOf(next));
    recorder.svidExpiry(next.expiresAt);
    logger.info("facade certificate rotated", { serial: next.serial, expiresAt: next.expiresAt });
  }));
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
      connections: connections.size,
      ...registry.count(),
      selfTest: tested,
      certificateExpiresAt: svid.expiresAt,
    }),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

const ACCESS = createContextKey<Access>({ kind: "refused", why: "the request was not judged" });

/** Nobody else would seal it, and an unsealed log stays in Gitea's database. */
async function sealPatiently(
  relay: Relay,
  { clock, random = Math.random, signal }: Pick<FacadeDeps, "clock" | "random"> & {
    readonly signal: AbortSignal;
  },
): Promise<void> {
  using limit = clock.timeout(SEAL_MS);
  const patience = AbortSignal.any([signal, limit.signal]);
  await retryForever(() => relay.seal(patience), {
    clock,
    random,
    backoff: SEAL_RETRY,
    signal: patience,
    final: (error) => !(error instanceof GiteaError) || !error.retryable,
  });
}

/** Runs before the body is read. */
function admit(
  context: HandlerContext,
  { logger, recorder }: Pick<FacadeDeps, "logger" | "recorder">,
): void {
  const access = context.values.get(ACCESS);
  const refuse = (why: string) => {
    recorder.facadeRequest(context.method.name, "permission_denied", 0);
    logger.warn("executor refused", { method: context.method.name, detail: why });
    throw new ConnectError("this executor has no part in that", Code.PermissionDenied);
  };
  if (access.kind === "busy") {
    recorder.facadeRequest(context.method.name, "resource_exhausted", 0);
    // The header tells it from a message that is too large, which no repetition makes smaller.
    throw new ConnectError(`too many calls: ${access.why}`, Code.ResourceExhausted, {
      "retry-after": "1",
    });
  }
  if (access.kind === "expired") {
    recorder.facadeRequest(context.method.name, "unavailable", 0);
    throw new ConnectError(EXPIRED, Code.Unavailable);
  }
  if (access.kind === "refused") return refuse(access.why);
  // A peer may ping before it knows its assignment; all else is for callers with a capability.
  if (context.method.name !== "Ping" && access.caller.kind === "refused") refuse(access.caller.why);
}

function callerOf(context: HandlerContext): Caller {
  const access = context.values.get(ACCESS);
  if (access.kind === "peer" && access.caller.kind === "caller") return access.caller.caller;
  throw new ConnectError("this executor has no part in that", Code.PermissionDenied);
}

function tlsOf(svid: Svid) {
  return { cert: svid.certificatePem, key: svid.privateKeyPem, ca: svid.bundlePem };
}

function isNonce(header: unknown, nonce: string): boolean {
  return typeof header === "string" && header.length === nonce.length &&
    timingSafeEqual(Buffer.from(header.padEnd(nonce.length)), Buffer.from(nonce));
}

/** Where a listener on every address is reached from here. */
const SELF: Readonly<Record<string, string>> = {
  "": "127.0.0.1",
  "0.0.0.0": "127.0.0.1",
  "::": "[::1]",
};

function listen(
  server: http2.Http2SecureServer,
  { hostname, port }: FacadeOptions,
): Promise<number> {
  const host = hostname === "" ? "0.0.0.0" : hostname;
  return new Promise((resolve, reject) => {
    server.once("error", (cause) => {
      const message =
        `Listen on "${host}:${port}" for executors: ${cause.message}: set RUNNER_FACADE_LISTEN`;
      reject(new Error(message, { cause }));
    });
    server.listen(port, host, () => {
      const address: AddressInfo | string | null = server.address();
      if (typeof address === "object" && address !== null) resolve(address.port);
      else reject(new Error("Listen for executors: the server has no port"));
    });
  });
}

function close(server: http2.Http2SecureServer, connections: Connections): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    connections.destroy();
  });
}
