import { onAbort } from "../../lib/abortable.ts";
import type { Clock } from "../../lib/clock.ts";

/** Nobody answered within our own deadline: the connection may be one of a peer that is gone. */
export class NoAnswer extends Error {
  override readonly name = "NoAnswer";
}

/**
 * As `clock.timeout(ms)`, aborting with {@link NoAnswer}. Callers' time-outs abort with other reasons:
 * who waits for a second only has not learnt that the connections are dead.
 */
export function createDeadline(
  clock: Clock,
  ms: number,
): { readonly signal: AbortSignal } & Disposable {
  const controller = new AbortController();
  const timer = clock.timeout(ms);
  onAbort(timer.signal, () => controller.abort(new NoAnswer(`No answer within ${ms} ms`)));
  return { signal: controller.signal, [Symbol.dispose]: () => timer[Symbol.dispose]() };
}
