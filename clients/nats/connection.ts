import {
  connect,
  type ConnectionOptions,
  credsAuthenticator,
  type NatsConnection as Client,
} from "nats";
import type { Call } from "../../controller/backend.ts";
import { QueueError } from "../../controller/queue.ts";
import { abortable, onAbort } from "../../lib/abortable.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Secret } from "../../lib/secret.ts";
import { connectFailure } from "./connect_failure.ts";
import { guardSockets } from "./library_sockets.ts";
import { createRequester, type Requester } from "./requester.ts";

/** Where NATS is and how to be let in; the part of the configuration of the same names. */
export interface NatsOptions {
  /** `nats://` or `tls://` URLs of one cluster. */
  readonly servers: readonly string[];
  readonly user: string | null;
  readonly password: Secret | null;
  readonly credsFile: string | null;
  readonly caFile: string | null;
  /** Name of this client as the server shows it. */
  readonly name?: string;
  /** Pause between two tries to connect. */
  readonly reconnectWaitMs?: number;
}

/** State of the connection, for people. */
export interface NatsStatus {
  /** `failed` and `closed` are final. */
  readonly kind: "connecting" | "connected" | "disconnected" | "failed" | "closed";
  /** Since when, milliseconds since the epoch. */
  readonly since: number;
  /** The server we are or were connected to, `host:port`. */
  readonly server: string | null;
  /** Why it is not connected; null when it is. */
  readonly detail: string | null;
}

/** What the server said of itself. */
export interface ServerFacts {
  readonly maxPayload: number;
  readonly version: string;
}

/**
 * One connection to NATS, kept for ever.
 *
 * ```
 * connecting --> connected <--> disconnected        connecting --> failed (can never become right)
 *      |             |               |
 *      +-------------+---------------+--> closed (disposed)
 * ```
 * A server that cannot be reached is waited for; wrong credentials, a wrong certificate or a missing
 * file at the start fail at once. After the first success nothing gives up.
 */
export interface NatsConnection extends AsyncDisposable {
  status(): NatsStatus;
  /** Resolves once connected; rejects with {@link QueueError} `refused` when that can never be. */
  ready(call: Call): Promise<ServerFacts>;
  /** The server's facts as last told; null before the first connection. */
  facts(): ServerFacts | null;
  /** Called after each connect and reconnect, until the signal aborts. */
  onConnect(listener: () => void, signal: AbortSignal): void;
  /** The wire, for this folder. */
  readonly wire: Requester;
}

/**
 * Connects in the background and returns at once. Dispose it to close; requests in flight are then
 * rejected, and an attempt to connect is left to end by itself.
 */
export function connectNats(
  options: NatsOptions,
  deps: { readonly logger: Logger; readonly clock: Clock },
): NatsConnection {
  guardSockets();
  const { clock } = deps;
  const logger = deps.logger.child({ component: "nats" });
  const waitMs = options.reconnectWaitMs ?? 250;
  const closing = new AbortController();
  const listeners = new Set<() => void>();
  const first = Promise.withResolvers<ServerFacts>();
  first.promise.catch(() => {});
  const closed = Promise.withResolvers<void>();
  let client: Client | undefined;
  let status: NatsStatus = { kind: "connecting", since: clock.now(), server: null, detail: null };
  let facts: ServerFacts | null = null;

  const become = (kind: NatsStatus["kind"], detail: string | null) => {
    const since = kind === status.kind ? status.since : clock.now();
    status = { kind, since, server: client?.getServer() ?? status.server, detail };
  };
  const wire = createRequester({
    clock,
    connected: (signal) => waitConnected(signal),
  });

  const waitConnected = async (signal: AbortSignal): Promise<void> => {
    if (status.kind === "connected") return;
    if (status.kind === "failed") await first.promise;
    const { promise, resolve } = Promise.withResolvers<void>();
    const stop = new AbortController();
    connection.onConnect(resolve, stop.signal);
    try {
      const either = AbortSignal.any([signal, closing.signal]);
      await abortable(first.promise.then(() => promise), either);
    } finally {
      stop.abort();
    }
  };

  const connected = (nc: Client) => {
    facts = { maxPayload: nc.info?.max_payload ?? 1_048_576, version: nc.info?.version ?? "" };
    become("connected", null);
    wire.attach(nc);
    logger.info("connected to NATS", { server: status.server, version: facts.version });
    first.resolve(facts);
    for (const listener of [...listeners]) listener();
  };

  const dial = async (): Promise<Client> => {
    for (let attempt = 1;; attempt++) {
      try {
        return await connectUntil(closing.signal, await dialOptions(options, waitMs));
      } catch (error) {
        closing.signal.throwIfAborted();
        const failure = connectFailure(error, options);
        if (!failure.retryable) throw failure;
        become("connecting", failure.message);
        // Once at once, then about each minute: a server may be away for days.
        if (attempt % 240 === 1) logger.warn("NATS cannot be reached", { error: failure, attempt });
        await clock.sleep(waitMs, closing.signal);
      }
    }
  };

  const follow = async (nc: Client) => {
    for await (const event of nc.status()) {
      if (event.type === "disconnect") {
        become("disconnected", "the connection was lost");
        wire.detach(new QueueError("unavailable", "Ask NATS: the connection was lost"));
        logger.warn("connection to NATS lost", { server: status.server });
      } else if (event.type === "reconnect") connected(nc);
      else if (event.type === "error") {
        if (status.kind !== "connected") become("disconnected", String(event.data));
        logger.warn("NATS reported an error", { code: String(event.data) });
      }
    }
  };

  const run = async () => {
    try {
      client = await dial();
      if (closing.signal.aborted) return await client.close();
      connected(client);
      // The library's status events do not end when the connection is closed.
      await Promise.race([follow(client), closed.promise]);
    } catch (error) {
      if (closing.signal.aborted) return;
      become("failed", error instanceof Error ? error.message : String(error));
      // Whoever waits for the first connection is told, and says so.
      if (facts !== null) logger.error("connection to NATS failed", { error });
      first.reject(error);
    }
  };

  const connection: NatsConnection = {
    status: () => status,
    facts: () => facts,
    wire,
    async ready({ signal }) {
      await waitConnected(signal);
      return await first.promise;
    },
    onConnect(listener, signal) {
      if (signal.aborted) return;
      listeners.add(listener);
      onAbort(signal, () => listeners.delete(listener));
    },
    async [Symbol.asyncDispose]() {
      if (status.kind !== "failed") become("closed", null);
      const reason = new QueueError("unavailable", "Ask NATS: the connection is closed", {
        retryable: false,
      });
      closing.abort(reason);
      first.reject(reason);
      wire.detach(reason);
      await client?.close();
      closed.resolve();
      await running;
    },
  };
  const running = run();
  return connection;
}

/**
 * Rejects with the signal's reason when it aborts first: the library tries one server after the other,
 * five seconds each, and cannot be told to stop. What it still makes is closed.
 */
async function connectUntil(signal: AbortSignal, options: ConnectionOptions): Promise<Client> {
  signal.throwIfAborted();
  const connecting = connect(options);
  try {
    return await abortable(connecting, signal);
  } catch (error) {
    if (signal.aborted) void connecting.then((client) => client.close()).catch(() => {});
    throw error;
  }
}

async function dialOptions(options: NatsOptions, waitMs: number) {
  const tls = options.servers.some((url) => url.startsWith("tls://"));
  return {
    servers: options.servers.map((url) => url.replace(/^(nats|tls):\/\//, "")),
    name: options.name ?? "gitea-dynamic-runner",
    maxReconnectAttempts: -1,
    reconnectTimeWait: waitMs,
    reconnectJitter: 100,
    // Ten seconds without a sign of life are asked about, thirty are a lost connection.
    pingInterval: 10_000,
    maxPingOut: 2,
    timeout: 5_000,
    // Once let in, always retried: an operator may be changing the password right now.
    ignoreAuthErrorAbort: true,
    noAsyncTraces: true,
    ...options.user === null ? {} : { user: options.user },
    ...options.password === null ? {} : { pass: options.password.reveal() },
    ...options.credsFile === null
      ? {}
      : { authenticator: credsAuthenticator(await Deno.readFile(options.credsFile)) },
    ...options.caFile === null
      ? tls ? { tls: {} } : {}
      : { tls: { ca: await Deno.readTextFile(options.caFile) } },
  };
}
