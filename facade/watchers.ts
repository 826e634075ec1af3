import { onAbort } from "../lib/abortable.ts";

/** Lets many wait for the next change of one thing each. */
export interface Watchers<K> {
  /** Wakes those who wait for a change of `key`. */
  changed(key: K): void;
  /** Resolves at the next change of `key`, or when the signal aborts. Never rejects. */
  next(key: K, signal: AbortSignal): Promise<void>;
}

/** Makes {@link Watchers}; a key that nobody waits for takes no memory. */
export function createWatchers<K>(): Watchers<K> {
  const waiting = new Map<K, Set<() => void>>();
  return {
    changed(key) {
      for (const wake of waiting.get(key) ?? []) wake();
    },
    async next(key, signal) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const set = waiting.get(key) ?? new Set();
      waiting.set(key, set.add(resolve));
      using _listening = onAbort(signal, resolve);
      await promise;
      set.delete(resolve);
      // Another waiter may have come to a set of its own since this one was emptied.
      if (set.size === 0 && waiting.get(key) === set) waiting.delete(key);
    },
  };
}
