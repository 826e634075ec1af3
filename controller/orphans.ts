import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { create } from "../proto/runtime.ts";
import { TaskStateSchema } from "../proto/gen/runner/v1/messages_pb.ts";
import type { Call } from "./backend.ts";
import { type Gitea, GiteaError } from "./gitea.ts";
import { assignmentIdOf, BACKENDS, type TaskId, taskIdOf } from "./model/ids.ts";
import { unstartedSteps } from "./model/steps.ts";
import type { AssignmentQueue } from "./queue.ts";
import type { Records } from "./records.ts";
import { fromWireResult, isGone, settleTask } from "./settle.ts";

/** A task that Gitea's lists show as running, on whatever runner. */
export interface RunningTask {
  readonly taskId: TaskId;
  /** Since its hand-out, by Gitea's own clock. */
  readonly ageMs: number;
  /** `owner/name`. */
  readonly repository: string;
  readonly job: string;
}

/** What runs at Gitea, as far as the token of `GITEA_API_TOKEN` may see. Throws `GiteaError`. */
export interface RunningTasks {
  /** A bounded part of it; later calls show other parts when one call cannot show all. */
  list(call: Call): Promise<readonly RunningTask[]>;
}

/** Times of {@link createOrphanCheck}, milliseconds. */
export interface OrphanTimes {
  readonly everyMs: number;
  /** Longest pause while the lists cannot be read. */
  readonly maxPauseMs: number;
  /** Younger ones may be on their way into the queue. */
  readonly minAgeMs: number;
  /** Between the two times that it must have been seen. */
  readonly apartMs: number;
}

/** Over 2 min old and seen twice: younger ones may be on their way to us. */
const DEFAULT_ORPHAN_TIMES: OrphanTimes = {
  everyMs: 60_000,
  maxPauseMs: 900_000,
  minAgeMs: 120_000,
  apartMs: 50_000,
};

const PER_ROUND = 20;
const MAX_REMEMBERED = 10_000;
const PAGE = 500;
/** Gitea takes of a state the steps that its job has and ignores the others. */
const MORE_STEPS_THAN_A_JOB_HAS = 500;

/**
 * Finds tasks that Gitea has handed to our registration and that nobody here knows: the controller was
 * killed between Gitea's answer and JetStream's, or the store was lost. Without it they would show as
 * running until Gitea's own time-out.
 *
 * Every candidate is asked about by an empty UpdateTask, which Gitea refuses for another runner's
 * task: those are remembered and never asked about again. Ours are failed with the reason in the log.
 * Trouble with the lists is said once and harms nothing.
 */
export function createOrphanCheck(deps: {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly gitea: Gitea;
  readonly running: RunningTasks;
  readonly queue: Pick<AssignmentQueue, "list">;
  readonly records: Pick<Records, "get">;
  /** In the ledger, with a fetcher, or in an executor that is only shown. */
  known(task: TaskId): boolean;
  /** Everything an earlier process left has been read. */
  ready(): boolean;
  /** Throws when this process may not act any more. */
  guard(): void;
}, times = DEFAULT_ORPHAN_TIMES): { run(signal: AbortSignal): Promise<void> } {
  const { clock, gitea } = deps;
  const logger = deps.logger.child({ component: "orphans" });
  /** When each was first seen, monotonic. */
  const seen = new Map<TaskId, number>();
  /** Not ours, or ended. */
  const done = new Map<TaskId, true>();
  let failures = 0;

  const look = async (signal: AbortSignal) => {
    const listed = await deps.running.list({ signal });
    const candidates = listed.filter(({ taskId, ageMs }) =>
      ageMs >= times.minAgeMs && !done.has(taskId) && !deps.known(taskId)
    );
    if (candidates.length === 0) return;
    const stored = await storedTasks(deps.queue, signal);
    let asked = 0;
    for (const task of candidates) {
      const { taskId } = task;
      if (stored.has(taskId) || await deps.records.get(taskId, { signal }) !== undefined) {
        seen.delete(taskId);
        continue;
      }
      const first = seen.get(taskId);
      if (first === undefined) remember(seen, taskId, clock.monotonic());
      else if (clock.monotonic() - first >= times.apartMs && asked++ < PER_ROUND) {
        await judge(task, signal);
      }
    }
  };

  const judge = async (task: RunningTask, signal: AbortSignal) => {
    const { taskId } = task;
    const forget = () => {
      seen.delete(taskId);
      remember(done, taskId, true);
    };
    try {
      deps.guard();
      const state = create(TaskStateSchema, { id: BigInt(taskId) });
      const answer = await gitea.updateTask({ state }, { signal });
      if (fromWireResult(answer.state?.result ?? 0) !== null) return forget();
      if (deps.known(taskId)) return void seen.delete(taskId);
      deps.guard();
      const steps = unstartedSteps(MORE_STEPS_THAN_A_JOB_HAS);
      const text = orphanText(task);
      await settleTask({ taskId, result: "failure", text, steps }, { gitea, clock }, signal);
      logger.warn("task known to nobody was failed at Gitea", {
        assignment: assignmentIdOf(taskId),
        repository: task.repository,
        job: task.job,
        ageSeconds: Math.round(task.ageMs / 1_000),
      });
      forget();
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof GiteaError && isGone(error)) return forget();
      logger.warn("a task known to nobody is asked about again", { taskId, error });
    }
  };

  const round = async (signal: AbortSignal) => {
    try {
      await look(signal);
      if (failures > 0) logger.info("running tasks at Gitea can be listed again", {});
      failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      // Said once: it harms nobody, Gitea's own time-out remains.
      if (failures === 0) logger.warn("running tasks at Gitea cannot be listed", { error });
      failures++;
    }
  };

  return {
    async run(signal) {
      while (!signal.aborted) {
        if (deps.ready()) await round(signal);
        const pause = Math.min(times.everyMs * 2 ** Math.min(failures, 10), times.maxPauseMs);
        await clock.sleep(deps.ready() ? pause : READY_MS, signal).catch(() => {});
      }
    },
  };
}

const READY_MS = 1_000;

function orphanText({ ageMs }: RunningTask): string {
  const minutes = Math.max(1, Math.round(ageMs / 60_000));
  return [
    "gitea-dynamic-runner: this job is lost.",
    `Gitea handed it out ${minutes} min ago, but it is neither in the controller's queue nor in one of`,
    "its executors: the controller was stopped in the very moment of the hand-out, or has lost its",
    "storage. Run the job again.",
  ].join("\n");
}

/** Tasks whose messages are stored, of all backends, also of those that are not served here. */
async function storedTasks(
  queue: Pick<AssignmentQueue, "list">,
  signal: AbortSignal,
): Promise<ReadonlySet<TaskId>> {
  const found = new Set<TaskId>();
  for (const backend of BACKENDS) {
    let fromSequence = 1;
    while (true) {
      const page = await queue.list(backend, { fromSequence, limit: PAGE }, { signal });
      for (const { id } of page) {
        const task = taskIdOf(id);
        if (task !== undefined) found.add(task);
      }
      const last = page.at(-1);
      if (page.length < PAGE || last === undefined) break;
      fromSequence = last.sequence + 1;
    }
  }
  return found;
}

/** Oldest out first: a map must not grow with what others run at Gitea. */
function remember<V>(map: Map<TaskId, V>, key: TaskId, value: V): void {
  map.set(key, value);
  const [oldest] = map.size > MAX_REMEMBERED ? map.keys() : [];
  if (oldest !== undefined) map.delete(oldest);
}
