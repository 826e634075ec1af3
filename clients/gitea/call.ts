import type { Clock } from "../../lib/clock.ts";
import { type Attempt, giteaError, giteaErrorFrom } from "./error.ts";

/**
 * Runs one call at Gitea with a deadline. Rejects with the signal's reason when the caller aborts,
 * otherwise with a `GiteaError`; a missed deadline is `unavailable`.
 */
export async function callWithin<T>(
  operation: (signal: AbortSignal) => Promise<T>,
  options: {
    readonly attempt: Attempt;
    readonly deadlineMs: number;
    readonly clock: Clock;
    readonly signal: AbortSignal;
  },
): Promise<T> {
  const { attempt, clock, deadlineMs, signal } = options;
  signal.throwIfAborted();
  using deadline = clock.timeout(deadlineMs);
  try {
    return await operation(AbortSignal.any([signal, deadline.signal]));
  } catch (error) {
    signal.throwIfAborted();
    throw deadline.signal.aborted
      ? giteaError("unavailable", attempt, `no answer within ${deadlineMs / 1000} s`, error)
      : giteaErrorFrom(error, attempt);
  }
}
