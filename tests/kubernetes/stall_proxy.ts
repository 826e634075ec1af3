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
  let stalled = false;
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
  const write = async (to: Deno.TcpConn, bytes: Uint8Array) => {
    for (let sent = 0; sent < bytes.length;) sent += await to.write(bytes.subarray(sent));
  };
  /** What one has sent that closes during a stall has reached nobody. */
  const toServer = async (from: Deno.TcpConn, to: Deno.TcpConn) => {
    const buffer = new Uint8Array(64 * 1024);
    const read = async () => {
      const size = await from.read(buffer);
      return size === null ? null : buffer.slice(0, size);
    };
    const held: Uint8Array[] = [];
    let reading = read();
    while (true) {
      const piece = await (held.length === 0 ? reading : Promise.race([reading, gate.promise]));
      if (piece === null) return;
      if (piece !== undefined) {
        held.push(piece);
        reading = read();
        if (stalled) continue;
      }
      for (const each of held.splice(0)) await write(to, each);
    }
  };
  const toClient = async (from: Deno.TcpConn, to: Deno.TcpConn) => {
    const buffer = new Uint8Array(64 * 1024);
    for (let size; (size = await from.read(buffer)) !== null;) {
      await gate.promise;
      await write(to, buffer.subarray(0, size));
    }
    await gate.promise;
  };
  const passOn = async (from: Deno.TcpConn) => {
    open.add(from);
    await gate.promise;
    const to = await Deno.connect({ hostname: "127.0.0.1", port }).catch(() => undefined);
    if (to === undefined) return close(from);
    open.add(to);
    const both = [toServer(from, to), toClient(to, from)];
    // One side is gone: so is the other.
    const end = () => {
      close(from);
      close(to);
    };
    await Promise.all(both.map((one) => one.catch(() => {}).finally(end)));
  };
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  tasks.add((async () => {
    for await (const connection of listener) tasks.add(passOn(connection));
  })());
  return {
    port: listener.addr.port,
    stall() {
      gate = Promise.withResolvers<void>();
      stalled = true;
    },
    resume() {
      stalled = false;
      gate.resolve();
    },
    async [Symbol.asyncDispose]() {
      listener.close();
      stalled = false;
      gate.resolve();
      for (const connection of [...open]) close(connection);
      await tasks.ended();
    },
  };
}
