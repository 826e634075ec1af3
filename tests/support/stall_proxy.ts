import { startTcpRelay, type Upstream } from "./tcp_relay.ts";

/**
 * A TCP proxy that can fall silent: connections stay open, and nothing passes. What was sent meanwhile
 * is passed on late, also when its sender has left: `hang_proxy.ts` forgets that.
 */
export interface StallProxy extends AsyncDisposable {
  readonly port: number;
  /** While true nothing passes, neither on old connections nor on new ones; then everything goes on. */
  stalled: boolean;
}

/** Listens on loopback in front of `upstream`. */
export function startStallProxy(upstream: Upstream): StallProxy {
  let gate: PromiseWithResolvers<void> | null = null;
  const passable = async () => {
    while (gate !== null) await gate.promise;
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
  const relay = startTcpRelay(async (client, connect) => {
    await passable();
    const server = await connect(upstream);
    // The end of either side is the end of both.
    await Promise.race([pump(client, server), pump(server, client)]);
  });
  const proxy: StallProxy = {
    port: relay.port,
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
      await relay[Symbol.asyncDispose]();
    },
  };
  return proxy;
}
