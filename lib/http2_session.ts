import http2, { type ClientHttp2Session, type Http2Session } from "node:http2";

/**
 * Makes a session of `node:http2` safe to receive GOAWAY: from now on it is destroyed in the next turn
 * of the event loop, never at once. Call it before the session can have read anything: in the
 * `session` event of a server, or right after `connect`.
 *
 * Why: Deno 2.9.6 answers GOAWAY by destroying a session without open streams, which frees memory that
 * nghttp2 goes on to use when the callback returns, and the process dies (denoland/deno#36788). Any
 * client that says good-bye in order can cause it.
 */
export function deferDestroy(session: Http2Session): void {
  const destroy = session.destroy.bind(session);
  session.destroy = (...args: Parameters<Http2Session["destroy"]>) => {
    // Not a microtask: those run before the native callback returns.
    setImmediate(() => destroy(...args));
  };
}

/**
 * Destroys a client's session with an error unless its server has sent its settings within `ms`: one that
 * accepts the connection and then hangs would be waited for until it ends. Call it right after `connect`.
 */
export function boundHandshake(session: ClientHttp2Session, ms: number): void {
  const limit = setTimeout(() => {
    session.destroy(new Error(`Connect by HTTP/2: no settings within ${ms / 1000} s`));
  }, ms);
  limit.unref();
  const done = () => clearTimeout(limit);
  session.once("remoteSettings", done);
  session.once("close", done);
}

/** As gRPC has it for one attempt to connect. */
const HANDSHAKE_MS = 20_000;

/**
 * Applies {@link deferDestroy} and {@link boundHandshake} to the sessions of libraries that call
 * `node:http2` themselves.
 */
export function guardSessionsEverywhere(): void {
  if (guarded) return;
  guarded = true;
  const { createServer, connect } = http2;
  Object.assign(http2, {
    createServer: (...args: Parameters<typeof createServer>) =>
      createServer(...args).on("session", deferDestroy),
    connect: (...args: Parameters<typeof connect>) => {
      const session = connect(...args);
      deferDestroy(session);
      boundHandshake(session, HANDSHAKE_MS);
      return session;
    },
  });
}

let guarded = false;
