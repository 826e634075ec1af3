/**
 * Waits for `work`, but no longer than the signal: rejects with its reason when it aborts first. The
 * work itself goes on; its later failure is nobody's any more.
 */
export async function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    if (signal.aborted) onAbort();
    return await Promise.race([aborted.promise, work]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Resolves once `event` has aborted; rejects with the reason of `signal` when that aborts first. */
export async function aborted(event: AbortSignal, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const onEvent = () => resolve();
  event.addEventListener("abort", onEvent, { once: true });
  try {
    if (event.aborted) resolve();
    await abortable(promise, signal);
  } finally {
    event.removeEventListener("abort", onEvent);
  }
}
