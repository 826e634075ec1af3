import { abortable, onAbort } from "../../lib/abortable.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/logger.ts";
import type { X509SVIDResponse } from "../../proto/gen/workload/workload_pb.ts";
import { create } from "../../proto/runtime.ts";
import { X509SVIDRequestSchema } from "../../proto/gen/workload/workload_pb.ts";
import { type GrpcClient, openUnixClient } from "../grpc/client.ts";
import { GrpcError } from "../grpc/grpc_error.ts";
import { readSvid, type Svid } from "./svid.ts";
import { fetchX509Svid, SECURITY_HEADER, socketPathOf } from "./workload_protocol.ts";

export type { Svid } from "./svid.ts";

/**
 * How the stream stands: `waiting` = no SVID yet, `live` = it is open and has given one, `stale` =
 * it broke, the last SVID is still in use (it may have expired), `closed` = stopped.
 */
export interface SvidStatus {
  readonly state: "waiting" | "live" | "stale" | "closed";
  /** Since when, milliseconds since the epoch. */
  readonly since: number;
  /** Why it waits or is stale; null when it is live. */
  readonly lastError: string | null;
}

/** The own SVID, kept fresh. */
export interface SvidSource extends AsyncDisposable {
  /** The newest one; null before the first. */
  current(): Svid | null;
  /** Waits for one that has not expired. Rejects with the signal's reason, or when the source closes. */
  ready(signal: AbortSignal): Promise<Svid>;
  /** Calls with every new SVID from now on; it must not throw. */
  subscribe(listener: (svid: Svid) => void): Disposable;
  status(): SvidStatus;
}

/** What {@link watchSvids} needs. */
export interface WatchOptions {
  /** Value of `SPIFFE_ENDPOINT_SOCKET`: `unix:///path` or `unix:/path`. */
  readonly endpoint: string;
  /** Take the SVID of this SPIFFE ID only; without it the first, the API's default. */
  readonly spiffeId?: string;
  readonly logger: Logger;
  readonly clock: Clock;
  /** In [0, 1); `Math.random` by default. */
  readonly random?: () => number;
}

const FIRST_DELAY_MS = 100;
/** An entry reaches SPIRE's agent after up to 5 s; asking costs the agent a hash of our binary. */
const MAX_DELAY_MS = 5_000;
/** A first answer takes SPIRE 0.2 s: after so long it is said that none comes, after the other it is asked anew. */
const SILENT_MS = 5_000;
const FIRST_ANSWER_MS = 30_000;
/** The platform's timers count no further. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * Keeps the SVID of this process fresh from the Workload API until the signal aborts or the source
 * is disposed. The stream is opened again for ever, with back-off from 0.1 to 5 s: the API ends it
 * with PERMISSION_DENIED while there is no entry, and with UNAVAILABLE when the agent goes. One that gives
 * no SVID for 30 s, or none before the last one has expired, is given up with its connection.
 *
 * Throws a `TypeError` at once when `endpoint` is not a unix socket.
 */
export function watchSvids(options: WatchOptions, { signal }: { signal: AbortSignal }): SvidSource {
  const path = socketPathOf(options.endpoint);
  if (path === undefined) {
    throw new TypeError(
      `Watch SVIDs: endpoint "${options.endpoint}" is not unix:///path: set SPIFFE_ENDPOINT_SOCKET`,
    );
  }
  const { clock, logger, random = Math.random } = options;
  const stop = new AbortController();
  const stopped = AbortSignal.any([signal, stop.signal]);
  const listeners = new Set<(svid: Svid) => void>();
  let current: Svid | null = null;
  let delay = FIRST_DELAY_MS;
  let status: SvidStatus = { state: "waiting", since: clock.now(), lastError: null };

  const enter = (state: SvidStatus["state"], lastError: string | null) => {
    const since = state === status.state ? status.since : clock.now();
    if (state === status.state && lastError === status.lastError) return;
    status = { state, since, lastError };
    if (lastError !== null) logger.warn("no SVID from the Workload API", { error: lastError });
  };
  const accept = (response: X509SVIDResponse): Svid => {
    const svid = pick(response, options.spiffeId);
    const fresh = svid.serial !== current?.serial || svid.bundlePem !== current.bundlePem;
    current = svid;
    enter("live", null);
    if (!fresh) return svid;
    logger.info("SVID received", { serial: svid.serial, expiresAt: new Date(svid.expiresAt) });
    for (const listener of [...listeners]) listener(svid);
    return svid;
  };
  const fail = (error: unknown) => {
    const text = error instanceof GrpcError
      ? `${error.code}: ${error.message}${wayOut(error, options)}`
      : String(error);
    enter(current === null ? "waiting" : "stale", text);
  };

  /** One stream to its end; resolves to whether its connection may serve for the next. */
  const follow = async (client: GrpcClient): Promise<boolean> => {
    using patience = createPatience(clock);
    using silent = clock.timeout(SILENT_MS);
    using _telling = onAbort(silent.signal, () => fail(nothingSaid()));
    const signal = AbortSignal.any([stopped, patience.over]);
    const call = { signal, metadata: SECURITY_HEADER };
    try {
      const request = create(X509SVIDRequestSchema);
      for await (const response of client.stream(fetchX509Svid, request, call)) {
        silent[Symbol.dispose]();
        const { expiresAt } = accept(response);
        patience.extend(expiresAt - clock.now());
        delay = FIRST_DELAY_MS;
      }
      fail(new GrpcError("UNAVAILABLE", "the Workload API ended the stream"));
    } catch (error) {
      if (!stopped.aborted) fail(error);
    }
    return !patience.over.aborted;
  };

  const run = async () => {
    while (!stopped.aborted) {
      using client = openUnixClient(path);
      let serves = true;
      while (serves && !stopped.aborted) {
        serves = await follow(client);
        // Between half and all of the delay, so that executors started together spread out.
        await clock.sleep(delay * (0.5 + random() / 2), stopped).catch(() => {});
        delay = Math.min(delay * 1.6, MAX_DELAY_MS);
      }
    }
    enter("closed", null);
  };
  const running = run();

  return {
    current: () => current,
    status: () => status,
    subscribe(listener) {
      // A wrapper, so that one function subscribed twice is called twice.
      const entry = (svid: Svid) => listener(svid);
      listeners.add(entry);
      return { [Symbol.dispose]: () => void listeners.delete(entry) };
    },
    async ready(waiter) {
      if (current !== null && current.expiresAt > clock.now()) return current;
      const { promise, resolve } = Promise.withResolvers<Svid>();
      listeners.add(resolve);
      try {
        return await abortable(promise, AbortSignal.any([waiter, stopped]));
      } finally {
        listeners.delete(resolve);
      }
    },
    async [Symbol.asyncDispose]() {
      stop.abort(new DOMException("The SVID source was closed", "AbortError"));
      await running;
    },
  };
}

/** For how long a stream may be silent: an agent that hangs, or its connection, must not hold us for ever. */
interface Patience extends Disposable {
  readonly over: AbortSignal;
  /** An SVID has come that expires after `ms`; a new one is to come before that. */
  extend(ms: number): void;
}

function createPatience(clock: Clock): Patience {
  const over = new AbortController();
  const end = () => over.abort(nothingSaid());
  const begin = (ms: number) => {
    const timer = clock.timeout(ms);
    onAbort(timer.signal, end);
    return timer;
  };
  let timer = begin(FIRST_ANSWER_MS);
  return {
    over: over.signal,
    extend(ms) {
      timer[Symbol.dispose]();
      timer = begin(Math.min(Math.max(ms, FIRST_ANSWER_MS), LONGEST_TIMER_MS));
    },
    [Symbol.dispose]: () => timer[Symbol.dispose](),
  };
}

function nothingSaid(): GrpcError {
  return new GrpcError("UNAVAILABLE", "the Workload API says nothing");
}

type Asked = Pick<WatchOptions, "endpoint" | "spiffeId">;

/** For a newcomer it is always the same that is missing; the API does not say it. */
function wayOut({ code }: GrpcError, asked: Asked): string {
  if (code !== "PERMISSION_DENIED") return checkOf(asked);
  const whose = asked.spiffeId === undefined ? "" : ` for "${asked.spiffeId}"`;
  return `: no entry at SPIRE${whose} has selectors of this process yet`;
}

function checkOf({ endpoint }: Asked): string {
  return `: check SPIFFE_ENDPOINT_SOCKET "${endpoint}", and that the agent behind it answers`;
}

function pick(response: X509SVIDResponse, wanted: string | undefined): Svid {
  const message = wanted === undefined
    ? response.svids[0]
    : response.svids.find((svid) => svid.spiffeId === wanted);
  if (message !== undefined) return readSvid(message);
  if (wanted === undefined) throw new Error("Read SVID: the Workload API gave none");
  const given = response.svids.map((svid) => `"${svid.spiffeId}"`).join(", ") || "none";
  throw new Error(`Read SVID: the Workload API gave ${given}, not "${wanted}"`);
}
