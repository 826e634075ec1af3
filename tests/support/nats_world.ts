import { connectNats, type NatsConnection } from "../../clients/nats/connection.ts";
import { ensureStreams } from "../../clients/nats/streams.ts";
import { systemClock } from "../../lib/clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { Secret } from "../../lib/secret.ts";
import { type NatsTestOptions, startNats, type TestNats } from "./nats.ts";

/** Names that every test on a real server uses: each has a server of its own. */
export const NAMES = { stream: "CI_RUNNER", subjectBase: "ci.assignment" } as const;
/** What the clients get. */
export const DEPS = { clock: systemClock, logger: silentLogger } as const;

/** A server of its own with the streams made, and a connection to it. */
export interface NatsWorld extends AsyncDisposable {
  readonly nats: TestNats;
  readonly connection: NatsConnection;
  /** Another connection, as of another controller; the caller disposes it. */
  connect(): NatsConnection;
}

/** Opens a {@link NatsWorld}. */
export async function openNatsWorld(options: NatsTestOptions = {}): Promise<NatsWorld> {
  await using stack = new AsyncDisposableStack();
  const nats = stack.use(await startNats(options));
  const connect = () => connectTo(nats);
  const connection = stack.use(connect());
  await ensureStreams(connection, NAMES, { ...DEPS, signal: AbortSignal.timeout(20_000) });
  const owned = stack.move();
  return { nats, connection, connect, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** Connects to a test's server. */
export function connectTo(nats: TestNats): NatsConnection {
  return connectNats({
    servers: [nats.url],
    user: nats.user,
    password: nats.password === null ? null : new Secret(nats.password),
    credsFile: null,
    caFile: null,
    reconnectWaitMs: 100,
  }, DEPS);
}
