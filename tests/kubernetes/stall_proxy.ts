import { createTasks } from "./tasks.ts";

/** A TCP proxy on loopback that can stop passing anything on without closing anything. */
export interface StallProxy extends AsyncDisposable {
  readonly port: number;
  /** Bytes wait, connections stay open and new ones are taken: nobody gets an answer or a reset. */
  stall(): void;
  resume(): void;
}

/** Starts a {@link StallProxy} in front of `port` of this machine. */
export function startStallProxy(port: number): StallProxy {
  let gate = Promise.withResolvers<void>();
  gate.resolve();
  const open = new Set<Deno.TcpConn>();
  const tasks = createTasks(() => {});
  const close = (connection: Deno.TcpConn) => {
    open.delete(connection);
    try {
      connection.close();
    } catch {
      // Closed before.
    }
  };
  const copy = async (from: Deno.TcpConn, to: Deno.TcpConn) => {
    const buffer = new Uint8Array(64 * 1024);
    try {
      for (let read; (read = await from.read(buffer)) !== null;) {
        await gate.promise;
        for (let sent = 0; sent < read;) sent += await to.write(buffer.subarray(sent, read));
      }
      await gate.promise;
    } catch {
      // One side is gone: so is the other.
    } finally {
      close(from);
      close(to);
    }
  };
  const passOn = async (from: Deno.TcpConn) => {
    open.add(from);
    await gate.promise;
    const to = await Deno.connect({ hostname: "127.0.0.1", port }).catch(() => undefined);
    if (to === undefined) return close(from);
    open.add(to);
    await Promise.all([copy(from, to), copy(to, from)]);
  };
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  tasks.add((async () => {
    for await (const connection of listener) tasks.add(passOn(connection));
  })());
  return {
    port: listener.addr.port,
    stall() {
      gate = Promise.withResolvers<void>();
    },
    resume: () => gate.resolve(),
    async [Symbol.asyncDispose]() {
      listener.close();
      gate.resolve();
      for (const connection of [...open]) close(connection);
      await tasks.ended();
    },
  };
}
