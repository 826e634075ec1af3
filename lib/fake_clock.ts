import { onAbort } from "./abortable.ts";
import type { Clock } from "./clock.ts";

/** A clock that moves only when told to; for tests. */
export interface FakeClock extends Clock {
  /** Moves time on, waking sleepers in order, and lets their continuations run. */
  advance(ms: number): Promise<void>;
  /** Moves time on without waking anybody: a process that was stopped. They wake at the next advance. */
  leap(ms: number): void;
  /** Sleepers and time-outs that wait. */
  readonly pending: number;
}

/**
 * Makes a {@link FakeClock} that starts at `start` milliseconds since the epoch. `turn` resolves after
 * one turn of the event loop; the default also lets timers and sockets of the real world have theirs.
 */
export function createFakeClock(start = 1_800_000_000_000, turn = timerTurn): FakeClock {
  let now = start;
  let sequence = 0;
  const waiting = new Map<number, { at: number; wake: () => void }>();
  const add = (ms: number, wake: () => void) => {
    const id = sequence++;
    waiting.set(id, { at: now + ms, wake });
    return id;
  };
  const settle = async () => {
    // Enough turns for a chain of continuations; macrotasks too, for WebCrypto and streams.
    for (let i = 0; i < 10; i++) await Promise.resolve();
    await turn();
  };
  return {
    now: () => now,
    monotonic: () => now - start,
    get pending() {
      return waiting.size;
    },
    sleep(ms, signal) {
      return new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason);
        const id = add(ms, () => {
          listening?.[Symbol.dispose]();
          resolve();
        });
        const listening = signal && onAbort(signal, () => {
          waiting.delete(id);
          reject(signal.reason);
        });
      });
    },
    timeout(ms) {
      const controller = new AbortController();
      const id = add(ms, () => {
        controller.abort(new DOMException(`Timed out after ${ms} ms`, "TimeoutError"));
      });
      return { signal: controller.signal, [Symbol.dispose]: () => void waiting.delete(id) };
    },
    leap(ms) {
      now += ms;
    },
    async advance(ms) {
      const end = now + ms;
      await settle();
      while (true) {
        const next = [...waiting].filter(([, w]) => w.at <= end)
          .sort(([a, x], [b, y]) => x.at - y.at || a - b)[0];
        if (next === undefined) break;
        const [id, { at, wake }] = next;
        waiting.delete(id);
        now = Math.max(now, at);
        wake();
        await settle();
      }
      now = end;
      await settle();
    },
  };
}

function timerTurn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}
