import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { retryForever } from "../lib/retry.ts";
import type { Task } from "../proto/gen/runner/v1/messages_pb.ts";
import { GiteaError } from "./gitea.ts";
import type { AssignmentInfo } from "./model/assignment_info.ts";
import type { TaskId } from "./model/ids.ts";
import { stepsOf } from "./model/steps.ts";
import { type AssignmentQueue, QueueError } from "./queue.ts";
import type { Recorder } from "./recorder.ts";

/** What a fetched task becomes. */
export type Placement =
  /** To be stored; the envelope is sealed. */
  | {
    readonly kind: "assignment";
    readonly info: AssignmentInfo;
    readonly envelope: Uint8Array;
    readonly headers: Readonly<Record<string, string>>;
  }
  /** Can never become an assignment; `detail` says to the job's author why and what to write. */
  | { readonly kind: "permanent"; readonly taskId: TaskId; readonly detail: string };

/** A task that can never run. */
export interface Refused {
  readonly taskId: TaskId;
  readonly detail: string;
  /** How many steps its job has: Gitea leaves those running that a final state does not name. */
  readonly steps: number;
}

/** What {@link storeTask} needs. */
export interface StoreTaskDeps {
  readonly queue: Pick<AssignmentQueue, "publish" | "maxPayload">;
  /** Decides and seals. A rejection is retried: the task is never dropped. */
  place(task: Task): Promise<Placement>;
  /** Fails the task at Gitea with `detail` in its log. Rejections are retried. */
  settlePermanent(refused: Refused, signal: AbortSignal): Promise<void>;
  /** The message is stored. May be told twice of the same task. */
  onStored(info: AssignmentInfo, sequence: number, storedAt: number): void;
  readonly recorder: Recorder;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly random: () => number;
}

const BACKOFF = { firstMs: 250, maxMs: 5_000 };

/**
 * Puts a fetched task into the queue, or fails it at Gitea if it can never run. Tries for ever:
 * Gitea hands a task out once. Rejects only with the signal's reason.
 */
export async function storeTask(
  task: Task,
  deps: StoreTaskDeps,
  signal: AbortSignal,
): Promise<void> {
  const { clock, logger, random, recorder } = deps;
  const retry = <T>(operation: () => Promise<T>, final?: (error: unknown) => boolean) =>
    retryForever(operation, {
      clock,
      random,
      signal,
      backoff: BACKOFF,
      ...(final === undefined ? {} : { final }),
      onError: (error, attempt) => {
        // Tries 1, 2, 4, 8, ... are logged: the rest says nothing new.
        if ((attempt & (attempt - 1)) === 0) {
          logger.error("scheduler error", {
            component: "scheduler",
            taskId: String(task.id),
            attempt,
            error,
          });
        }
      },
    });
  const failAtGitea = (taskId: TaskId, detail: string) => {
    logger.warn("task refused", { component: "scheduler", taskId, detail });
    const refused = { taskId, detail, steps: stepsOf(task) };
    return retry(() => deps.settlePermanent(refused, signal), isGone).catch((error) => {
      if (!isGone(error)) throw error;
    });
  };

  const placement = await retry(() => deps.place(task));
  if (placement.kind === "permanent") return failAtGitea(placement.taskId, placement.detail);
  const { info, envelope, headers } = placement;
  const message = { id: info.id, backend: info.backend, data: envelope, headers };
  try {
    const { sequence, duplicate } = await retry(async () => {
      try {
        return await deps.queue.publish(message, { signal });
      } catch (error) {
        recorder.published("error");
        throw error;
      }
    }, isTooLarge);
    recorder.published(duplicate ? "duplicate" : "stored");
    logger.debug("task stored", { component: "scheduler", assignment: info.id, sequence });
    deps.onStored(info, sequence, clock.now());
  } catch (error) {
    if (!isTooLarge(error)) throw error;
    await failAtGitea(info.taskId, tooLargeDetail(envelope.byteLength, deps.queue.maxPayload));
  }
}

function isTooLarge(error: unknown): boolean {
  return error instanceof QueueError && error.code === "too_large";
}

/** Gitea does not know the task (any more): nothing is left to settle. */
function isGone(error: unknown): boolean {
  return error instanceof GiteaError &&
    (error.code === "not_found" || error.code === "foreign_task");
}

function tooLargeDetail(size: number, limit: number): string {
  return `The job is too large to be queued: its sealed data has ${size} bytes, the server's max_payload is ${limit} bytes. ` +
    "Make its event, variables, secrets or the outputs of the jobs it needs smaller, or have max_payload raised";
}
