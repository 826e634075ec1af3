/**
 * Runs `act` once when the signal aborts, at once when it has: a listener that is added after the
 * event would never hear of it, and whoever relies on it would wait for ever. Dispose of it when the
 * work is over.
 */
export function onAbort(signal: AbortSignal, act: () => void): Disposable {
  if (signal.aborted) act();
  else signal.addEventListener("abort", act, { once: true });
  return { [Symbol.dispose]: () => signal.removeEventListener("abort", act) };
}

/**
 * Waits for `work`, but no longer than the signal: rejects with its reason when it aborts first. The
 * work itself goes on; its later failure is nobody's any more.
 */
export async function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  using _listening = onAbort(signal, () => aborted.reject(signal.reason));
  return await Promise.race([aborted.promise, work]);
}

/** Pending until the signal aborts, then rejects with its reason. */
export function untilAborted(signal: AbortSignal): Promise<never> {
  return abortable(Promise.withResolvers<never>().promise, signal);
}

/** Resolves once `event` has aborted; rejects with the reason of `signal` when that aborts first. */
export async function aborted(event: AbortSignal, signal?: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  using _listening = onAbort(event, resolve);
  await (signal === undefined ? promise : abortable(promise, signal));
}
