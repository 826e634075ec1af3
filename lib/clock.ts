import { onAbort } from "./abortable.ts";

/** Time as an argument, so that tests hold it in their hand. */
export interface Clock {
  /** Milliseconds since the epoch (wall clock): for what people read. */
  now(): number;
  /** Milliseconds on a clock that never jumps: for deadlines. */
  monotonic(): number;
  /** Resolves after `ms`; rejects with the signal's reason when it aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Aborts with a `TimeoutError` after `ms`. Dispose it to free its timer. */
  timeout(ms: number): { readonly signal: AbortSignal } & Disposable;
}

/** The machine's clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep(ms, signal) {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const timer = setTimeout(() => {
        listening?.[Symbol.dispose]();
        resolve();
      }, ms);
      const listening = signal && onAbort(signal, () => {
        clearTimeout(timer);
        reject(signal.reason);
      });
    });
  },
  timeout(ms) {
    const controller = new AbortController();
    const timer = setTimeout(() => {
      controller.abort(new DOMException(`Timed out after ${ms} ms`, "TimeoutError"));
    }, ms);
    return { signal: controller.signal, [Symbol.dispose]: () => clearTimeout(timer) };
  },
};
