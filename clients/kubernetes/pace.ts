import type { Clock } from "../../lib/clock.ts";
import { createTurns } from "./turns.ts";

/** Does `work` when its time has come; rejects as that does, or with the signal's reason while waiting. */
export type Pace = <T>(work: () => Promise<T>, signal: AbortSignal) => Promise<T>;

/**
 * Makes a {@link Pace}: one at a time, in the order in which they were asked for, each `spacingMs` after
 * the end of the one before. Whoever is asked therefore hears of two at least that far apart, however
 * long requests are on their way.
 */
export function createPace(clock: Clock, spacingMs: number): Pace {
  const turns = createTurns(1);
  let notBefore = -Infinity;
  return async (work, signal) => {
    using _turn = await turns.take(signal);
    const wait = notBefore - clock.monotonic();
    if (wait > 0) await clock.sleep(wait, signal);
    try {
      return await work();
    } finally {
      notBefore = clock.monotonic() + spacingMs;
    }
  };
}
