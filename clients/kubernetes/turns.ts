import { abortable } from "../../lib/abortable.ts";

/** Bounds how many things go on at a time; those who wait are served in order. */
export interface Turns {
  /** Resolves when it is the caller's turn, which lasts until disposal; rejects as the signal says. */
  take(signal: AbortSignal): Promise<Disposable>;
}

/** Makes {@link Turns} for `limit` at a time. */
export function createTurns(limit: number): Turns {
  let free = limit;
  const waiting = new Set<() => void>();
  const release = () => {
    const [next] = waiting;
    if (next === undefined) {
      free += 1;
    } else {
      waiting.delete(next);
      next();
    }
  };
  const turn = (): Disposable => {
    let held = true;
    return {
      [Symbol.dispose]() {
        if (held) release();
        held = false;
      },
    };
  };
  return {
    async take(signal) {
      signal.throwIfAborted();
      if (free > 0) {
        free -= 1;
        return turn();
      }
      const called = Promise.withResolvers<void>();
      waiting.add(called.resolve);
      try {
        await abortable(called.promise, signal);
      } catch (error) {
        // Called in the same moment as aborted: the turn goes on to the next one.
        if (!waiting.delete(called.resolve)) release();
        throw error;
      }
      return turn();
    },
  };
}
