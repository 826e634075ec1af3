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
export function startCutProxy(
  upstream: { readonly hostname: string; readonly port: number },
): CutProxy {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const open = new Set<Deno.TcpConn>();
  const spoilt = new Set<Deno.TcpConn>();
  const served = new Set<Promise<void>>();
  let cut = false;
  const close = (connection: Deno.TcpConn) => {
    open.delete(connection);
    spoilt.delete(connection);
    try {
      connection.close();
    } catch {
      // The other side was first.
    }
  };
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
  const serve = async (client: Deno.TcpConn) => {
    open.add(client);
    let server: Deno.TcpConn | null = null;
    try {
      if (cut) {
        spoilt.add(client);
        await pump(client, null);
        return;
      }
      server = await Deno.connect(upstream);
      open.add(server);
      // The end of either side is the end of both.
      await Promise.race([pump(client, server), pump(server, client)]);
    } catch {
      // Ended, by whomever.
    } finally {
      close(client);
      if (server !== null) close(server);
    }
  };
  const accepting = (async () => {
    for await (const client of listener) {
      const serving = serve(client).finally(() => served.delete(serving));
      served.add(serving);
    }
  })();
  return {
    port: listener.addr.port,
    get cut() {
      return cut;
    },
    set cut(on) {
      if (cut === on) return;
      cut = on;
      if (on) { for (const connection of open) spoilt.add(connection); }
      else for (const connection of [...spoilt]) close(connection);
    },
    async [Symbol.asyncDispose]() {
      listener.close();
      for (const connection of [...open]) close(connection);
      await Promise.all([accepting, ...served]);
    },
  };
}
