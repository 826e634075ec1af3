import type { Logger } from "../lib/logger.ts";
import type { TaskGroup } from "../lib/task_group.ts";
import type { Backend } from "./backend.ts";
import { type Entry, takeTurn } from "./entry.ts";

/**
 * Binds the identity of an executor again that has lost it: its SVID would not be renewed, or never
 * come. One try each time it is called, in the background and in turn with other work on that
 * executor; what fails is logged, and the caller's next look tries again. `controller/attempts.ts`
 * binds for the first time, so that only what was bound before is of interest here.
 */
export function createRebind(deps: {
  readonly logger: Logger;
  readonly tasks: Pick<TaskGroup, "spawn">;
  readonly backend: Pick<Backend, "bindIdentity">;
  /** Throws when this process may not act any more. */
  guard(): void;
}): (entry: Entry) => void {
  const { tasks, backend, guard } = deps;
  const logger = deps.logger.child({ component: "lifecycle" });
  const underWay = new Set<Entry>();

  const bind = async (entry: Entry, signal: AbortSignal) => {
    const { executor, info } = entry;
    if (executor === null || executor.ended !== null || executor.terminating) return;
    if (!wasBound(entry)) return;
    guard();
    await backend.bindIdentity(executor, info, { signal });
    logger.warn("identity is bound again", {
      assignment: info.id,
      executor: executor.name,
      detail: "it was gone, though nobody but the controller has to delete it",
    });
  };

  return (entry) => {
    if (underWay.has(entry) || !wasBound(entry)) return;
    underWay.add(entry);
    tasks.spawn("bind again", async (signal) => {
      const release = await takeTurn(entry);
      try {
        signal.throwIfAborted();
        await bind(entry, signal);
      } catch (error) {
        if (signal.aborted) return;
        const { id } = entry.info;
        logger.error("backend lifecycle error", { action: "bind again", assignment: id, error });
      } finally {
        underWay.delete(entry);
        release();
      }
    });
  };
}

/** From its first binding until its job has ended. */
function wasBound({ state: { kind } }: Entry): boolean {
  return kind === "ready" || kind === "claimed" || kind === "running";
}
