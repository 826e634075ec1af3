import { abortable } from "../lib/abortable.ts";

/** Lets one through at a time, in the order of arrival. */
export interface Turnstile {
  /** Runs `task` when it is its turn. Rejects with the signal's reason if that comes before. */
  pass<T>(signal: AbortSignal, task: () => Promise<T>): Promise<T>;
  /** Those who wait or are inside. */
  readonly length: number;
}

/** Makes a {@link Turnstile}. */
export function createTurnstile(): Turnstile {
  let last: Promise<void> = Promise.resolve();
  let length = 0;
  return {
    get length() {
      return length;
    },
    async pass(signal, task) {
      const before = last;
      const { promise: done, resolve: leave } = Promise.withResolvers<void>();
      // Whoever gives up while waiting must not let the next one in before its turn.
      last = before.then(() => done);
      length++;
      try {
        await abortable(before, signal);
        return await task();
      } finally {
        length--;
        leave();
      }
    },
  };
}
