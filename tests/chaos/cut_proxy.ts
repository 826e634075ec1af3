/** A TCP proxy whose connections can be cut, in front of a server that comes and goes. */
export interface CutProxy extends AsyncDisposable {
  readonly port: number;
  /** Ends every connection now; says how many there were. */
  cut(): number;
  /** While true nobody gets through. */
  away: boolean;
}

/** Listens on loopback; asks for the port of the server at each connection. */
export function startCutProxy(upstream: () => number | null): CutProxy {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const open = new Set<Deno.TcpConn>();
  const served = new Set<Promise<void>>();
  let away = false;
  const close = (connection: Deno.TcpConn) => {
    open.delete(connection);
    try {
      connection.close();
    } catch {
      // The other side was first.
    }
  };
  const serve = async (client: Deno.TcpConn) => {
    const port = upstream();
    let server: Deno.TcpConn | undefined;
    try {
      if (away || port === null) return;
      open.add(client);
      server = await Deno.connect({ hostname: "127.0.0.1", port });
      open.add(server);
      // The end of either side is the end of both.
      await Promise.race([
        client.readable.pipeTo(server.writable),
        server.readable.pipeTo(client.writable),
      ]);
    } catch {
      // Cut, by whomever.
    } finally {
      close(client);
      if (server !== undefined) close(server);
    }
  };
  const cut = () => {
    const pairs = open.size / 2;
    for (const connection of [...open]) close(connection);
    return pairs;
  };
  const accepting = (async () => {
    for await (const client of listener) {
      const serving = serve(client).finally(() => served.delete(serving));
      served.add(serving);
    }
  })();
  return {
    port: listener.addr.port,
    cut,
    get away() {
      return away;
    },
    set away(value) {
      away = value;
      if (value) cut();
    },
    async [Symbol.asyncDispose]() {
      away = true;
      listener.close();
      await accepting.catch(() => {});
      cut();
      await Promise.all(served);
    },
  };
}
