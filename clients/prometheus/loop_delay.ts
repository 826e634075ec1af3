import type { Clock } from "../../lib/clock.ts";

/** How late this process's timers fire. */
export interface LoopDelay extends AsyncDisposable {
  /** The worst delay since the last call, seconds; 0 when nothing was late. */
  take(): number;
}

const EVERY_MS = 500;

/** Measures by sleeping: Deno's `monitorEventLoopDelay` does not see a blocked loop (2.9.6). */
export function createLoopDelay(clock: Clock): LoopDelay {
  const stop = new AbortController();
  let worst = 0;
  const measure = async () => {
    while (!stop.signal.aborted) {
      const start = clock.monotonic();
      try {
        await clock.sleep(EVERY_MS, stop.signal);
      } catch {
        return;
      }
      worst = Math.max(worst, (clock.monotonic() - start - EVERY_MS) / 1000);
    }
  };
  const running = measure();
  return {
    take() {
      const taken = Math.max(0, worst);
      worst = 0;
      return taken;
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
    },
  };
}
