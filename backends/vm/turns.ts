import type { Call } from "../../controller/backend.ts";
import { abortable } from "../../lib/abortable.ts";

/**
 * One piece of work at a time for each key. The server merges metadata without a lock: of two PATCHes
 * at one time one may undo the other (measured on 1.1.1).
 */
export interface Turns {
  /** Runs `work` after those before it; rejects with the signal's reason when that aborts first. */
  take<T>(key: string, call: Call, work: () => Promise<T>): Promise<T>;
}

/** Makes {@link Turns}. */
export function createTurns(): Turns {
  const last = new Map<string, Promise<void>>();
  return {
    async take(key, { signal }, work) {
      const before = last.get(key) ?? Promise.resolve();
      const done = Promise.withResolvers<void>();
      // Who leaves while he waits leaves nobody past those before him.
      const settled = before.then(() => done.promise);
      last.set(key, settled);
      try {
        await abortable(before, signal);
        return await work();
      } finally {
        done.resolve();
        settled.then(() => {
          if (last.get(key) === settled) last.delete(key);
        });
      }
    },
  };
}
