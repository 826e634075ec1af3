import http2, { type Http2Session } from "node:http2";

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

/** Applies {@link deferDestroy} to the sessions of libraries that call `node:http2` themselves. */
export function deferDestroyEverywhere(): void {
  if (guarded) return;
  guarded = true;
  const { createServer, connect } = http2;
  Object.assign(http2, {
    createServer: (...args: Parameters<typeof createServer>) =>
      createServer(...args).on("session", deferDestroy),
    connect: (...args: Parameters<typeof connect>) => {
      const session = connect(...args);
      deferDestroy(session);
      return session;
    },
  });
}

let guarded = false;
