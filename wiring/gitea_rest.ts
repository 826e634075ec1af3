import { createGiteaRest } from "../clients/gitea/rest.ts";
import type { Config } from "../controller/config/config.ts";
import type { Engine } from "../controller/engine.ts";
import type { Gitea } from "../controller/gitea.ts";
import {
  assignmentIdOf,
  executorName,
  type Instance,
  type TaskId,
} from "../controller/model/ids.ts";
import { createOrphanCheck } from "../controller/orphans.ts";
import { warnOfOthers } from "../controller/other_runners.ts";
import type { AssignmentQueue } from "../controller/queue.ts";
import type { Records } from "../controller/records.ts";
import type { Scheduler } from "../controller/scheduler.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";

const POLL_MS = 1_000;

/**
 * What is done with `GITEA_API_TOKEN` while leading: the check for tasks that nobody knows, and the
 * warning about other runners. Does nothing without the token. Resolves when aborted.
 */
export async function useApiToken(
  deps: {
    readonly config: Config;
    readonly giteaUrl: string;
    readonly instance: Instance;
    readonly gitea: Gitea;
    readonly engine: Engine;
    readonly scheduler: Pick<Scheduler, "holds">;
    readonly queue: AssignmentQueue;
    readonly records: Records;
    readonly clock: Clock;
    readonly logger: Logger;
    /** Our own id at Gitea; null before the first Declare. */
    runnerId(): string | null;
    guard(): void;
  },
  signal: AbortSignal,
): Promise<void> {
  const { config, engine, clock, logger } = deps;
  const token = config.gitea.apiToken;
  if (token === null) return;
  const rest = createGiteaRest({ url: deps.giteaUrl, token, clock });

  const warn = async () => {
    if (config.defaultBackend === null) return;
    while (!signal.aborted) {
      const ours = deps.runnerId();
      if (ours !== null) return await warnOfOthers({ runners: rest, ours, logger }, signal);
      await clock.sleep(POLL_MS, signal).catch(() => {});
    }
  };

  const known = (task: TaskId) => {
    const id = assignmentIdOf(task);
    const name = executorName(deps.instance, id);
    return engine.ledger.get(id) !== undefined || deps.scheduler.holds(task) ||
      (["pod", "vm"] as const).some((backend) =>
        engine.strangers(backend).some(({ executor }) => executor.name === name)
      );
  };

  await Promise.all([
    warn(),
    createOrphanCheck({ ...deps, running: rest, known, ready: engine.ready }).run(signal),
  ]);
}
