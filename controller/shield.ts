import { onAbort } from "../lib/abortable.ts";
import type { Clock } from "../lib/clock.ts";

/** A signal that follows another one late, so that what is in flight can be finished. */
export interface Shield extends Disposable {
  /** Aborts `graceMs` after the signal it was made from. */
  readonly signal: AbortSignal;
}

/** Makes a {@link Shield}; dispose of it to free its timer. */
export function createShield(clock: Clock, graceMs: number, signal: AbortSignal): Shield {
  const late = new AbortController();
  const done = new AbortController();
  const follow = () => {
    clock.sleep(graceMs, done.signal).then(() => late.abort(signal.reason), () => {});
  };
  const following = onAbort(signal, follow);
  return {
    signal: late.signal,
    [Symbol.dispose]() {
      following[Symbol.dispose]();
      done.abort();
    },
  };
}
