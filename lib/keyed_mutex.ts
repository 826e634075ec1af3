import { abortable } from "./abortable.ts";

/** One piece of work at a time for each key, in the order of arrival. */
export interface KeyedMutex {
  /** Runs `work` after those before it; rejects with the signal's reason when that aborts first. */
  run<T>(key: string, signal: AbortSignal, work: () => Promise<T>): Promise<T>;
}

/** Makes a {@link KeyedMutex}. Keys that nobody waits for are not kept. */
export function createKeyedMutex(): KeyedMutex {
  const last = new Map<string, Promise<void>>();
  return {
    async run(key, signal, work) {
      const before = last.get(key) ?? Promise.resolve();
      const done = Promise.withResolvers<void>();
      // Whoever gives up while waiting must not let the next one in before those ahead have left.
      const settled = before.then(() => done.promise);
      last.set(key, settled);
      void settled.then(() => {
        if (last.get(key) === settled) last.delete(key);
      });
      try {
        await abortable(before, signal);
        return await work();
      } finally {
        done.resolve();
      }
    },
  };
}
