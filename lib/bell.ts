import { abortable } from "./abortable.ts";
import type { Clock } from "./clock.ts";

/** Lets one loop sleep until somebody rings. */
export interface Bell {
  /** Wakes the sleeper; the next one at once when nobody sleeps. */
  ring(): void;
  /** Resolves at a ring, after `ms`, or when aborted. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
}

/** Makes a {@link Bell}. */
export function createBell(clock: Clock): Bell {
  let rung = Promise.withResolvers<void>();
  return {
    ring: () => rung.resolve(),
    async wait(ms, signal) {
      using pause = clock.timeout(ms);
      await abortable(rung.promise, AbortSignal.any([signal, pause.signal])).catch(() => {});
      rung = Promise.withResolvers();
    },
  };
}
