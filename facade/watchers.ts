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
    next(key, signal) {
      return new Promise((resolve) => {
        if (signal.aborted) return resolve();
        const set = waiting.get(key) ?? new Set();
        waiting.set(key, set);
        const wake = () => {
          set.delete(wake);
          if (set.size === 0) waiting.delete(key);
          signal.removeEventListener("abort", wake);
          resolve();
        };
        set.add(wake);
        signal.addEventListener("abort", wake, { once: true });
      });
    },
  };
}
