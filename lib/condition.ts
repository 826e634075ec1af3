import { abortable } from "./abortable.ts";

/** Lets any number wait for the next change of something, as a condition variable does. */
export interface Condition {
  /** Wakes all who wait; who comes later waits for the next. */
  notifyAll(): void;
  /**
   * Resolves at the next {@link Condition.notifyAll}; rejects with the signal's reason. Waiting has
   * begun when this returns: look at what may have changed after the call, not before.
   */
  wait(signal: AbortSignal): Promise<void>;
}

/** Makes a {@link Condition}; who gives up leaves nothing behind. */
export function createCondition(): Condition {
  const waiters = new Set<() => void>();
  return {
    notifyAll() {
      for (const wake of waiters) wake();
      waiters.clear();
    },
    async wait(signal) {
      const { promise, resolve } = Promise.withResolvers<void>();
      waiters.add(resolve);
      try {
        await abortable(promise, signal);
      } finally {
        waiters.delete(resolve);
      }
    },
  };
}
