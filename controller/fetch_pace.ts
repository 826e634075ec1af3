import { onAbort } from "../lib/abortable.ts";
import type { Clock } from "../lib/clock.ts";

/**
 * When each fetcher may ask Gitea, and with which tasks version.
 *
 * ```
 *            a task came                     empty answer to 0,
 *   idle ------------------> burst            asked in this burst
 *    ^  one at a time,        |  everyone,  ------------------+
 *    |  version known,        |  version 0, at once           |
 *    +--------------------------------------------------------+
 * ```
 * Gitea looks for tasks only if the version sent differs from its own, although tasks may wait: so
 * the version is sent only while idle, and even then one fetch in `forceMs` sends 0. A burst has a
 * number; an empty answer ends only the burst in which its question was asked, so that the loser of
 * a race for one task does not stop the others.
 */
export interface FetchPace {
  /** Resolves when this fetcher may ask; rejects with the signal's reason. */
  next(signal: AbortSignal): Promise<Question>;
  /** As {@link next}, but never faster than idle polls and always with 0: for a fetcher after an error. */
  retry(signal: AbortSignal): Promise<Question>;
  /** Takes an answer in; says what it means. */
  answered(
    question: Question,
    answer: { readonly task: boolean; readonly tasksVersion: bigint },
  ): "task" | "empty" | "throttled";
  /** One fetch with version 0 now; a task then starts a burst. Repeated calls are one. */
  nudge(): void;
  /** Until the next idle poll, milliseconds; null in a burst. */
  idleWaitMs(): number | null;
}

/** What to send, and in which burst. */
export interface Question {
  /** 0 forces a look for tasks. */
  readonly version: bigint;
  readonly burst: number;
}

/** Settings of {@link createFetchPace}. */
export interface FetchPaceOptions {
  /** Least time between two idle polls of all fetchers together, milliseconds. */
  readonly idleIntervalMs: number;
  /** While idle one question in this time is sent with version 0, milliseconds. */
  readonly forceMs: number;
}

/** The pace shared by all fetchers. The first one asks at once, the others when there is a task. */
export function createFetchPace(clock: Clock, options: FetchPaceOptions): FetchPace {
  let version = 0n;
  let burst = 1;
  // Nobody knows yet whether anything waits: a thousand need not ask to find that out.
  let emptyBurst = 1;
  let nudged = false;
  let nextIdleAt = clock.monotonic();
  let lastForcedAt = -Infinity;
  let wake = new AbortController();
  const line = createLine();

  const forced = (): Question => {
    lastForcedAt = clock.monotonic();
    return { version: 0n, burst };
  };
  const wakeAll = () => {
    wake.abort(WOKEN);
    wake = new AbortController();
  };
  /** Waits for its place in the line and for the interval; resolves early to `false` when woken. */
  const idleTurn = async (signal: AbortSignal, wakeable: boolean): Promise<boolean> => {
    const either = wakeable ? AbortSignal.any([signal, wake.signal]) : signal;
    try {
      using _place = await line.enter(either);
      const waitMs = nextIdleAt - clock.monotonic();
      if (waitMs > 0) await clock.sleep(waitMs, either);
      nextIdleAt = clock.monotonic() + options.idleIntervalMs;
      return true;
    } catch (error) {
      signal.throwIfAborted();
      if (error === WOKEN) return false;
      throw error;
    }
  };

  return {
    async next(signal) {
      while (true) {
        signal.throwIfAborted();
        if (emptyBurst < burst) return forced();
        if (nudged) {
          nudged = false;
          return forced();
        }
        if (!await idleTurn(signal, true)) continue;
        if (clock.monotonic() - lastForcedAt >= options.forceMs) return forced();
        return { version, burst };
      }
    },
    async retry(signal) {
      await idleTurn(signal, false);
      return forced();
    },
    answered(question, { task, tasksVersion }) {
      if (tasksVersion > version) version = tasksVersion;
      if (task) {
        burst += 1;
        wakeAll();
        return "task";
      }
      if (question.version !== 0n) return "empty";
      if (tasksVersion === 0n) return "throttled";
      emptyBurst = Math.max(emptyBurst, question.burst);
      return "empty";
    },
    nudge() {
      nudged = true;
      wakeAll();
    },
    idleWaitMs: () => emptyBurst < burst ? null : Math.max(0, nextIdleAt - clock.monotonic()),
  };
}

const WOKEN = new DOMException("Woken", "AbortError");

/** First come, first served; one at a time. */
function createLine() {
  const waiting = new Set<() => void>();
  let busy = false;
  const leave = () => {
    const [first] = waiting;
    if (first === undefined) busy = false;
    else first();
  };
  return {
    /** Resolves when it is this one's turn; dispose of it to let the next one in. */
    enter(signal: AbortSignal): Promise<Disposable> {
      return new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason);
        const place = { [Symbol.dispose]: leave };
        if (!busy) {
          busy = true;
          return resolve(place);
        }
        const start = () => {
          waiting.delete(start);
          leaving[Symbol.dispose]();
          resolve(place);
        };
        waiting.add(start);
        // Not by `abortable()`: who was let in must not be told of an abort, or the place is lost.
        const leaving = onAbort(signal, () => {
          waiting.delete(start);
          reject(signal.reason);
        });
      });
    },
  };
}
