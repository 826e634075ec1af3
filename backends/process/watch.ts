import type { Executor, ExecutorChange } from "../../controller/backend.ts";
import type { ExecutorName } from "../../controller/model/ids.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/logger.ts";

/** Wakes whoever waits for a change. */
export interface Bell {
  ring(): void;
  /** How often it was rung. */
  readonly rings: number;
  /** Resolves when it was rung more than `heard` times, after `ms`, or at an abort. Never rejects. */
  wait(
    ms: number,
    options: { readonly heard: number; readonly clock: Clock; readonly signal: AbortSignal },
  ): Promise<void>;
}

/** Makes a {@link Bell}. */
export function createBell(): Bell {
  const waiting = new Set<() => void>();
  let rings = 0;
  return {
    get rings() {
      return rings;
    },
    ring() {
      rings++;
      for (const wake of waiting) wake();
    },
    async wait(ms, { heard, clock, signal }) {
      if (rings > heard) return;
      const rung = new AbortController();
      const wake = () => rung.abort();
      waiting.add(wake);
      try {
        await clock.sleep(ms, AbortSignal.any([signal, rung.signal]));
      } catch {
        // Rung or aborted: either way it is time to look.
      } finally {
        waiting.delete(wake);
      }
    },
  };
}

/**
 * Changes as seen by looking again and again; the first look reports everything that is there. Ends
 * when the signal aborts; a look that fails is logged and made again.
 */
export async function* pollChanges(
  look: (signal: AbortSignal) => Promise<Executor[]>,
  options: {
    readonly bell: Bell;
    readonly pollMs: number;
    readonly clock: Clock;
    readonly logger: Logger;
    readonly signal: AbortSignal;
  },
): AsyncGenerator<ExecutorChange> {
  const { bell, pollMs, clock, logger, signal } = options;
  let known = new Map<ExecutorName, string>();
  while (!signal.aborted) {
    let executors: Executor[];
    // A change during the look, which may have come too late for that, makes it look again.
    const heard = bell.rings;
    try {
      executors = await look(signal);
    } catch (error) {
      if (signal.aborted) return;
      logger.warn("executors cannot be listed", { error });
      await bell.wait(pollMs * 4, { heard, clock, signal });
      continue;
    }
    const seen = new Map(executors.map((executor) => [executor.name, fingerprint(executor)]));
    for (const executor of executors) {
      if (known.get(executor.name) !== seen.get(executor.name)) {
        yield { name: executor.name, executor };
      }
    }
    for (const name of known.keys()) {
      if (!seen.has(name)) yield { name, executor: null };
    }
    known = seen;
    await bell.wait(pollMs, { heard, clock, signal });
  }
}

function fingerprint({ uid, phase, terminal, ended }: Executor): string {
  return JSON.stringify([uid, phase, terminal, ended === null]);
}
