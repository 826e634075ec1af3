/**
 * Runs all at the same time; resolves when each has ended. When one fails the others' signal aborts, their
 * end is awaited, and the first failure is thrown: nothing goes on behind the caller's back.
 */
export async function together(
  tasks: readonly ((signal: AbortSignal) => Promise<unknown>)[],
  signal: AbortSignal,
): Promise<void> {
  const failed = new AbortController();
  const either = AbortSignal.any([signal, failed.signal]);
  await Promise.all(tasks.map(async (task) => {
    try {
      await task(either);
    } catch (error) {
      failed.abort(error);
    }
  }));
  failed.signal.throwIfAborted();
}
