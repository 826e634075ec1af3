/** A TCP proxy that can fall silent: connections stay open, and nothing passes. */
export interface StallProxy extends AsyncDisposable {
  readonly port: number;
  /** While true nothing passes, neither on old connections nor on new ones; then everything goes on. */
  stalled: boolean;
}

/** Listens on loopback in front of `upstream`. */
export function startStallProxy(
  upstream: { readonly hostname: string; readonly port: number },
): StallProxy {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const open = new Set<Deno.TcpConn>();
  const served = new Set<Promise<void>>();
  let gate: PromiseWithResolvers<void> | null = null;
  const passable = async () => {
    while (gate !== null) await gate.promise;
  };
  const close = (connection: Deno.TcpConn) => {
    open.delete(connection);
    try {
      connection.close();
    } catch {
      // The other side was first.
    }
  };
  const pump = async (from: Deno.TcpConn, to: Deno.TcpConn) => {
    const valve = new TransformStream<Uint8Array, Uint8Array>({
      async transform(chunk, controller) {
        await passable();
        controller.enqueue(chunk);
      },
    });
    await from.readable.pipeThrough(valve).pipeTo(to.writable);
  };
  const serve = async (client: Deno.TcpConn) => {
    open.add(client);
    let server: Deno.TcpConn | undefined;
    try {
      await passable();
      server = await Deno.connect(upstream);
      open.add(server);
      // The end of either side is the end of both.
      await Promise.race([pump(client, server), pump(server, client)]);
    } catch {
      // Ended, by whomever.
    } finally {
      close(client);
      if (server !== undefined) close(server);
    }
  };
  const accepting = (async () => {
    for await (const client of listener) {
      const serving = serve(client).finally(() => served.delete(serving));
      served.add(serving);
    }
  })();
  const proxy: StallProxy = {
    port: listener.addr.port,
    get stalled() {
      return gate !== null;
    },
    set stalled(on) {
      if (on) gate ??= Promise.withResolvers();
      else {
        gate?.resolve();
        gate = null;
      }
    },
    async [Symbol.asyncDispose]() {
      proxy.stalled = false;
      listener.close();
      for (const connection of [...open]) close(connection);
      await Promise.all([accepting, ...served]);
    },
  };
  return proxy;
}
