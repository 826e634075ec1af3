import type { Clock } from "../../lib/clock.ts";
import { GiteaError } from "../../controller/gitea.ts";
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

const AGAIN_MS = 100;

/**
 * Runs a call that may be repeated once more when Gitea answers with an error of its own. Most often
 * that is a lock of its database, gone a moment later; and what takes several calls in a row would
 * never come to its end while every second one fails.
 */
export async function againIfInternal<T>(
  call: () => Promise<T>,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof GiteaError) || error.code !== "internal") throw error;
    await clock.sleep(AGAIN_MS, signal);
    return await call();
  }
}
