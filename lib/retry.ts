import type { Clock } from "./clock.ts";

/** How long to wait between tries. */
export interface Backoff {
  /** First wait, milliseconds. */
  readonly firstMs: number;
  /** Longest wait, milliseconds. */
  readonly maxMs: number;
}

/** The wait after `attempt` failures (from 1), with full jitter on its upper half. */
export function backoffMs(attempt: number, backoff: Backoff, random: () => number): number {
  const whole = Math.min(backoff.maxMs, backoff.firstMs * 2 ** Math.min(attempt - 1, 30));
  return whole / 2 + random() * whole / 2;
}

/**
 * Repeats `operation` until it succeeds; gives up only when `signal` aborts (rejects with its
 * reason) or `final(error)` is true (rejects with the error).
 */
export async function retryForever<T>(
  operation: (attempt: number) => Promise<T>,
  options: {
    readonly clock: Clock;
    readonly random: () => number;
    readonly backoff: Backoff;
    readonly signal: AbortSignal;
    readonly final?: (error: unknown) => boolean;
    readonly onError?: (error: unknown, attempt: number) => void;
  },
): Promise<T> {
  for (let attempt = 1;; attempt++) {
    options.signal.throwIfAborted();
    try {
      return await operation(attempt);
    } catch (error) {
      options.signal.throwIfAborted();
      if (options.final?.(error)) throw error;
      options.onError?.(error, attempt);
      await options.clock.sleep(
        backoffMs(attempt, options.backoff, options.random),
        options.signal,
      );
    }
  }
}
