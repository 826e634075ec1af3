import type { Executor, ExecutorChange } from "../../controller/backend.ts";
import type { ExecutorName } from "../../controller/model/ids.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/logger.ts";
import { SandboxError } from "./sandboxes.ts";

/**
 * Changes as seen by listing again and again, one list for all executors; the first reports everything
 * that is there. One that a list lacks is looked at before it is told to be gone, because pages are no
 * picture of one moment; so is one that was made here and that no list has shown. Ends when the signal
 * aborts; a list that fails says nothing about anybody.
 */
export async function* pollSandboxes(
  deps: {
    list(): Promise<Executor[]>;
    find(name: ExecutorName): Promise<Executor | undefined>;
    /** Names of those that were made here and are believed to be there. */
    made(): Iterable<ExecutorName>;
    readonly pollMs: number;
    readonly clock: Clock;
    readonly logger: Logger;
  },
  signal: AbortSignal,
): AsyncGenerator<ExecutorChange> {
  const { clock, logger, pollMs } = deps;
  const known = new Map<ExecutorName, string>();
  let failing = false;
  const differs = (name: ExecutorName, executor: Executor | null) =>
    executor === null || known.get(name) !== fingerprint(executor);
  const note = ({ name, executor }: ExecutorChange) => {
    if (executor === null) known.delete(name);
    else known.set(name, fingerprint(executor));
  };

  while (!signal.aborted) {
    let pauseMs = pollMs;
    try {
      for (const name of deps.made()) if (!known.has(name)) known.set(name, UNSEEN);
      const executors = await deps.list();
      const names = new Set(executors.map(({ name }) => name));
      const missing = [...known.keys()].filter((name) => !names.has(name));
      // What is there comes first: it waits for nobody who cannot be looked at.
      for (const executor of executors) {
        const change = { name: executor.name, executor };
        if (!differs(change.name, executor)) continue;
        note(change);
        yield change;
      }
      for (const name of missing) {
        const change = { name, executor: await deps.find(name) ?? null };
        if (!differs(name, change.executor)) continue;
        note(change);
        yield change;
      }
      failing = false;
    } catch (error) {
      if (signal.aborted) return;
      if (!failing) logger.warn("executors cannot be listed", { error });
      failing = true;
      pauseMs = Math.max(pollMs, Math.min(askedFor(error), LONGEST_PAUSE_MS));
    }
    await clock.sleep(pauseMs, signal).catch(() => {});
  }
}

/** Fingerprint of none. */
const UNSEEN = "";
/** How long the server wants to be left alone, milliseconds. */
function askedFor(error: unknown): number {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof SandboxError ? cause.retryAfterMs ?? 0 : 0;
}

const LONGEST_PAUSE_MS = 60_000;

function fingerprint({ uid, phase, terminal, ended, waiting }: Executor): string {
  return JSON.stringify([uid, phase, terminal, ended === null, waiting?.detail ?? null]);
}
