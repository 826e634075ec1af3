import { startTcpRelay, type Upstream } from "./tcp_relay.ts";

/** A TCP proxy whose way can be cut as a network partition cuts it. */
export interface CutProxy extends AsyncDisposable {
  readonly port: number;
  /**
   * While true everything that comes is lost, on old connections and on new ones, and nothing is
   * closed. Afterwards those connections are closed: what was lost is never passed on late.
   */
  cut: boolean;
}

/** Listens on loopback in front of `upstream`. */
export function startCutProxy(upstream: Upstream): CutProxy {
  const spoilt = new WeakSet<Deno.TcpConn>();
  let cut = false;
  /** Reads on while the way is cut, so that an end of `from` is seen. */
  const pump = async (from: Deno.TcpConn, to: Deno.TcpConn | null) => {
    const buffer = new Uint8Array(64 * 1024);
    for (let read; (read = await from.read(buffer)) !== null;) {
      if (cut || to === null || spoilt.has(from) || spoilt.has(to)) {
        spoilt.add(from);
        if (to !== null) spoilt.add(to);
        continue;
      }
      for (let sent = 0; sent < read;) sent += await to.write(buffer.subarray(sent, read));
    }
  };
  const relay = startTcpRelay(async (client, connect) => {
    if (cut) {
      spoilt.add(client);
      await pump(client, null);
      return;
    }
    const server = await connect(upstream);
    // The end of either side is the end of both.
    await Promise.race([pump(client, server), pump(server, client)]);
  });
  return {
    port: relay.port,
    get cut() {
      return cut;
    },
    set cut(on) {
      if (cut === on) return;
      cut = on;
      for (const connection of [...relay.open]) {
        if (on) spoilt.add(connection);
        else if (spoilt.has(connection)) relay.close(connection);
      }
    },
    [Symbol.asyncDispose]: () => relay[Symbol.asyncDispose](),
  };
}
