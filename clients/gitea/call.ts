import { abortable } from "../../lib/abortable.ts";
import type { Clock } from "../../lib/clock.ts";
import { GiteaError } from "../../controller/gitea.ts";
import { type Attempt, giteaError, giteaErrorFrom } from "./error.ts";

/** A timer that is so late tells that the whole process was stopped (SIGSTOP, a paused machine). */
const LATE_MS = 100;
/** For reading what has come while it was stopped. */
const GRACE_MS = 2_000;

/**
 * Runs one call at Gitea with a deadline. Rejects with the signal's reason when the caller aborts,
 * otherwise with a `GiteaError`; a missed deadline is `unavailable`. A process that was stopped past
 * the deadline has 2 s more: on waking its timers fire before its sockets are read, and the answer that
 * waits there may be a task that nobody else will ever get.
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
  using deadline = startDeadline(clock, deadlineMs);
  try {
    const either = AbortSignal.any([signal, deadline.signal]);
    // Not only by the operation: an answer's body may go on although its request was aborted.
    return await abortable(operation(either), either);
  } catch (error) {
    signal.throwIfAborted();
    throw deadline.signal.aborted
      ? giteaError("unavailable", attempt, `no answer within ${deadlineMs / 1000} s`, error)
      : giteaErrorFrom(error, attempt);
  }
}

/** Aborts after `ms`, and later when the timer itself was late. Dispose it to free its timer. */
function startDeadline(
  clock: Clock,
  ms: number,
): { readonly signal: AbortSignal } & Disposable {
  const over = new AbortController();
  const ended = new AbortController();
  const due = clock.monotonic() + ms;
  const wait = async () => {
    await clock.sleep(ms, ended.signal);
    if (clock.monotonic() - due > LATE_MS) await clock.sleep(GRACE_MS, ended.signal);
    over.abort(new DOMException(`Timed out after ${ms} ms`, "TimeoutError"));
  };
  wait().catch(() => {}); // Ended before it was over.
  return { signal: over.signal, [Symbol.dispose]: () => ended.abort() };
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
