import type { NatsConnection } from "../../clients/nats/connection.ts";
import { openNatsWorld } from "./nats_world.ts";

/** A store, and what it stands on. */
export interface StoreWorld<T> extends AsyncDisposable {
  readonly store: T;
}

/** Worlds of a store in memory. */
export function inMemory<T>(make: () => T): () => Promise<StoreWorld<T>> {
  return () => Promise.resolve({ store: make(), [Symbol.asyncDispose]: () => Promise.resolve() });
}

/** Worlds of a store on a server of its own. */
export function onNats<T>(make: (connection: NatsConnection) => T): () => Promise<StoreWorld<T>> {
  return async () => {
    const world = await openNatsWorld();
    return {
      store: make(world.connection),
      [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
    };
  };
}
