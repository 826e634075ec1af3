/** A listener on loopback that serves each connection by itself. */
export interface TcpRelay extends AsyncDisposable {
  readonly port: number;
  /** Connections of both sides that are open. */
  readonly open: ReadonlySet<Deno.TcpConn>;
  close(connection: Deno.TcpConn): void;
}

/** Where the other side of a connection is. */
export interface Upstream {
  readonly hostname: string;
  readonly port: number;
}

/**
 * Starts a {@link TcpRelay}. `serve` gets a connection and `connect`, which makes its other side; when it
 * ends or rejects, both are closed. Disposing closes everything and waits for all that were served.
 */
export function startTcpRelay(
  serve: (
    client: Deno.TcpConn,
    connect: (upstream: Upstream) => Promise<Deno.TcpConn>,
  ) => Promise<void>,
): TcpRelay {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const open = new Set<Deno.TcpConn>();
  const served = new Set<Promise<void>>();
  const close = (connection: Deno.TcpConn) => {
    open.delete(connection);
    try {
      connection.close();
    } catch {
      // The other side was first.
    }
  };
  const run = async (client: Deno.TcpConn) => {
    const own = [client];
    open.add(client);
    try {
      await serve(client, async (upstream) => {
        const server = await Deno.connect(upstream);
        own.push(server);
        open.add(server);
        return server;
      });
    } catch {
      // Ended, by whomever.
    } finally {
      for (const connection of own) close(connection);
    }
  };
  const accepting = (async () => {
    for await (const client of listener) {
      const serving = run(client).finally(() => served.delete(serving));
      served.add(serving);
    }
  })();
  return {
    port: listener.addr.port,
    open,
    close,
    async [Symbol.asyncDispose]() {
      listener.close();
      for (const connection of [...open]) close(connection);
      await Promise.all([accepting, ...served]);
    },
  };
}
