import type { Call } from "../../controller/backend.ts";

/**
 * One call at a time for each key. The server merges metadata without a lock: of two PATCHes at one
 * time one may undo the other (measured on 1.1.1).
 */
export interface Turns {
  /** Runs `work` after those before it; rejects with the signal's reason when that aborts first. */
  take<T>(key: string, call: Call, work: () => Promise<T>): Promise<T>;
}

/** Makes {@link Turns}. */
export function createTurns(): Turns {
  const last = new Map<string, Promise<unknown>>();
  return {
    async take(key, { signal }, work) {
      const before = last.get(key);
      const run = async () => {
        await before;
        signal.throwIfAborted();
        return await work();
      };
      const mine = run();
      const settled = mine.then(() => {}, () => {});
      last.set(key, settled);
      try {
        return await mine;
      } finally {
        if (last.get(key) === settled) last.delete(key);
      }
    },
  };
}
