import { abortable } from "../../lib/abortable.ts";

/** Wakes one waiter. */
export interface Bell {
  /** A ring while nobody waits is kept; several are one. */
  ring(): void;
  /** Resolves at the next ring; rejects when aborted. One waiter at a time. */
  wait(signal: AbortSignal): Promise<void>;
}

/** Makes a {@link Bell} that has not rung. */
export function createBell(): Bell {
  let rung = false;
  let waiter: PromiseWithResolvers<void> | undefined;
  return {
    ring() {
      rung = true;
      waiter?.resolve();
    },
    async wait(signal) {
      signal.throwIfAborted();
      if (!rung) {
        waiter = Promise.withResolvers<void>();
        try {
          await abortable(waiter.promise, signal);
        } finally {
          waiter = undefined;
        }
      }
      rung = false;
    },
  };
}
