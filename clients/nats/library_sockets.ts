import net from "node:net";
import { boundGreeting } from "./greeting_bound.ts";

/**
 * Takes three faults out of the sockets that `nats` 2.29 makes, by `createConnection(port, host, listener)`:
 *
 * - It takes all listeners off its socket twice while it connects (after the dial, and after the server's
 *   INFO). A connection that is reset in between has nobody to tell: the error would be an uncaught one
 *   and end the process. Such a socket keeps one listener that does nothing. The library hears of the
 *   end all the same, by its own time-out.
 * - Before it gives a silent connection up it waits until all that was written has left, by an empty
 *   write. A server that is gone or frozen takes nothing any more: with more unsent than the kernel holds,
 *   the connection would never be given up, nor made anew. So an empty write is done at once. (In Deno
 *   2.9.6 a socket of TLS takes everything by itself, and never holds up such a write.)
 * - A server that accepts and says nothing is given up after `timeout`, and the socket forgotten, open:
 *   one more with each try. Such a one is closed.
 *
 * The server's first line is bounded, too: see {@link boundGreeting}.
 */
export function guardSockets(): void {
  if (guarded) return;
  guarded = true;
  const original = net.createConnection;
  const create = (...args: Parameters<typeof original>): net.Socket => {
    const socket = original(...args);
    const [port, host] = args as readonly unknown[];
    if (typeof port === "number" && typeof host === "string") {
      guard(socket);
      boundGreeting(socket);
    }
    return socket;
  };
  net.createConnection = create as typeof original;
}

/** Longer than the `timeout` that this folder connects with. */
const SILENT_MS = 7_500;
let guarded = false;

function guard(socket: net.Socket): void {
  const remove = socket.removeAllListeners.bind(socket);
  socket.removeAllListeners = (event?: Parameters<typeof remove>[0]) => {
    // Without an argument it takes off all; `undefined` would be the name of an event.
    if (event === undefined) remove();
    else remove(event);
    socket.on("error", ignore);
    return socket;
  };
  boundSilence(socket, SILENT_MS);
  const { write } = socket;
  Object.assign(socket, {
    write(...args: readonly unknown[]): boolean {
      const [bytes, done] = args;
      if (!(bytes instanceof Uint8Array) || bytes.length > 0 || typeof done !== "function") {
        return Reflect.apply(write, socket, args);
      }
      queueMicrotask(() => done());
      return true;
    },
  });
}

/** Destroys a socket on which nothing has come after `ms`, whoever takes listeners off it. */
export function boundSilence(socket: net.Socket, ms: number): void {
  const limit = setTimeout(() => {
    if (socket.bytesRead === 0) socket.destroy();
  }, ms);
  limit.unref();
  const { destroy } = socket;
  Object.assign(socket, {
    destroy(...args: readonly unknown[]): net.Socket {
      clearTimeout(limit);
      return Reflect.apply(destroy, socket, args);
    },
  });
}

function ignore(): void {}
