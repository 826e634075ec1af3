import type { Clock } from "../../lib/clock.ts";

/** Resolves when the caller may begin; rejects with the signal's reason. */
export type Pace = (signal: AbortSignal) => Promise<void>;

/** Makes a {@link Pace}: beginnings are `spacingMs` apart at least, in the order in which they were asked for. */
export function createPace(clock: Clock, spacingMs: number): Pace {
  let next = -Infinity;
  return async (signal) => {
    signal.throwIfAborted();
    const now = clock.monotonic();
    const at = Math.max(now, next);
    next = at + spacingMs;
    if (at > now) await clock.sleep(at - now, signal);
  };
}
