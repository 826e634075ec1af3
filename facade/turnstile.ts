import { createKeyedMutex } from "../lib/keyed_mutex.ts";

/** Lets one through at a time, in the order of arrival. */
export interface Turnstile {
  /** Runs `task` when it is its turn. Rejects with the signal's reason if that comes before. */
  pass<T>(signal: AbortSignal, task: () => Promise<T>): Promise<T>;
  /** Those who wait or are inside. */
  readonly length: number;
}

/** Makes a {@link Turnstile}. */
export function createTurnstile(): Turnstile {
  const mutex = createKeyedMutex();
  let length = 0;
  return {
    get length() {
      return length;
    },
    async pass(signal, task) {
      length++;
      try {
        return await mutex.run("", signal, task);
      } finally {
        length--;
      }
    },
  };
}
