import { startTcpRelay } from "./tcp_relay.ts";

/** A TCP proxy on loopback in front of a server that hangs when it is told to. */
export interface HangProxy extends AsyncDisposable {
  readonly port: number;
  /**
   * Bytes wait, connections stay open and new ones are taken: nobody gets an answer or a reset. What one
   * has sent that leaves meanwhile reaches nobody.
   */
  hang(): void;
  resume(): void;
}

/** Starts a {@link HangProxy} in front of `port` of this machine. */
export function startHangProxy(port: number): HangProxy {
  let gate = Promise.withResolvers<void>();
  let hangs = false;
  gate.resolve();
  const write = async (to: Deno.TcpConn, bytes: Uint8Array) => {
    for (let sent = 0; sent < bytes.length;) sent += await to.write(bytes.subarray(sent));
  };
  /** Reads on while it hangs, so that an end of `from` is seen. */
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
        if (hangs) continue;
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
  const relay = startTcpRelay(async (client, connect) => {
    await gate.promise;
    const server = await connect({ hostname: "127.0.0.1", port });
    // One side is gone: so is the other.
    await Promise.race([toServer(client, server), toClient(server, client)]);
  });
  const resume = () => {
    hangs = false;
    gate.resolve();
  };
  return {
    port: relay.port,
    hang() {
      // Those that wait for the gate of before would never be let through.
      if (hangs) return;
      gate = Promise.withResolvers<void>();
      hangs = true;
    },
    resume,
    async [Symbol.asyncDispose]() {
      resume();
      await relay[Symbol.asyncDispose]();
    },
  };
}
