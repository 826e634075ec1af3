/**
 * Runs both at the same time; resolves to both results. When one fails the other's signal aborts, its
 * end is awaited, and the first failure is thrown: nothing of either goes on behind the caller's back.
 */
export async function allOrNone<A, B>(
  tasks: readonly [(signal: AbortSignal) => Promise<A>, (signal: AbortSignal) => Promise<B>],
  signal: AbortSignal,
): Promise<[A, B]> {
  const failed = new AbortController();
  const either = AbortSignal.any([signal, failed.signal]);
  const guarded = async <T>(task: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    try {
      return await task(either);
    } catch (error) {
      failed.abort(error);
      throw error;
    }
  };
  const [a, b] = await Promise.allSettled([guarded(tasks[0]), guarded(tasks[1])]);
  if (a.status === "fulfilled" && b.status === "fulfilled") return [a.value, b.value];
  throw failed.signal.reason;
}
