import type { Executor, ExecutorChange } from "../../controller/backend.ts";
import type { ExecutorName } from "../../controller/model/ids.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/logger.ts";

/**
 * Changes as seen by listing again and again, one list for all executors; the first reports everything
 * that is there. One that a list lacks is looked at before it is told to be gone, because pages are no
 * picture of one moment. Ends when the signal aborts; a list that fails says nothing about anybody.
 */
export async function* pollSandboxes(
  deps: {
    list(): Promise<Executor[]>;
    find(name: ExecutorName): Promise<Executor | undefined>;
    readonly pollMs: number;
    readonly clock: Clock;
    readonly logger: Logger;
  },
  signal: AbortSignal,
): AsyncGenerator<ExecutorChange> {
  const { clock, logger, pollMs } = deps;
  const known = new Map<ExecutorName, string>();
  let failing = false;
  while (!signal.aborted) {
    try {
      for (const change of await changes(known, deps)) {
        if (change.executor === null) known.delete(change.name);
        else known.set(change.name, fingerprint(change.executor));
        yield change;
      }
      failing = false;
    } catch (error) {
      if (signal.aborted) return;
      if (!failing) logger.warn("executors cannot be listed", { error });
      failing = true;
    }
    await clock.sleep(pollMs, signal).catch(() => {});
  }
}

async function changes(
  known: ReadonlyMap<ExecutorName, string>,
  { list, find }: Pick<Parameters<typeof pollSandboxes>[0], "list" | "find">,
): Promise<ExecutorChange[]> {
  const executors = await list();
  const found: ExecutorChange[] = executors
    .filter((executor) => known.get(executor.name) !== fingerprint(executor))
    .map((executor) => ({ name: executor.name, executor }));
  const names = new Set(executors.map(({ name }) => name));
  for (const name of known.keys()) {
    if (names.has(name)) continue;
    const executor = await find(name) ?? null;
    if (executor === null || known.get(name) !== fingerprint(executor)) {
      found.push({ name, executor });
    }
  }
  return found;
}

function fingerprint({ uid, phase, terminal, ended, waiting }: Executor): string {
  return JSON.stringify([uid, phase, terminal, ended === null, waiting?.detail ?? null]);
}
