import type { Clock } from "../lib/clock.ts";
import { create, timestampFromMs } from "../proto/runtime.ts";
import {
  LogRowSchema,
  Result as WireResult,
  StepStateSchema,
  TaskStateSchema,
} from "../proto/gen/runner/v1/messages_pb.ts";
import { type Gitea, GiteaError } from "./gitea.ts";
import type { TaskId } from "./model/ids.ts";
import type { Result } from "./model/reason.ts";
import type { StepSnapshot } from "./model/record.ts";

/** What the controller itself reports as the end of a task. */
export interface Settlement {
  readonly taskId: TaskId;
  readonly result: Result;
  /** Why, in plain words: becomes the last rows of the job's log. */
  readonly text: string;
  /** As last forwarded; unfinished ones are closed as cancelled. */
  readonly steps: readonly StepSnapshot[];
}

/**
 * Tells Gitea how a task ended: a log row that says why, the log sealed, then the final state with
 * every step closed (a state without steps would reset finished ones). Resolves to the result that
 * Gitea has stored, which is an earlier one if the task had ended already; `null` if Gitea does not
 * know the task (any more). One try; throws `GiteaError` when it should be tried again.
 */
export async function settleTask(
  settlement: Settlement,
  deps: { readonly gitea: Gitea; readonly clock: Clock },
  signal: AbortSignal,
): Promise<Result | null> {
  const { gitea, clock } = deps;
  const taskId = BigInt(settlement.taskId);
  try {
    await sealLog(taskId, settlement.text, deps, signal);
    const now = clock.now();
    const answer = await gitea.updateTask({
      state: create(TaskStateSchema, {
        id: taskId,
        result: toWireResult(settlement.result),
        startedAt: timestampFromMs(firstStart(settlement.steps, now)),
        stoppedAt: timestampFromMs(now),
        steps: settlement.steps.map((step) => closedStep(step, now)),
      }),
    }, { signal });
    return fromWireResult(answer.state?.result ?? WireResult.UNSPECIFIED) ?? settlement.result;
  } catch (error) {
    if (error instanceof GiteaError && isGone(error)) return null;
    throw error;
  }
}

/** True when Gitea says for good that the task is not ours or not there. */
export function isGone(error: GiteaError): boolean {
  return error.code === "not_found" || error.code === "foreign_task";
}

/** Gitea's number for a result. */
export function toWireResult(result: Result | null): WireResult {
  switch (result) {
    case "success":
      return WireResult.SUCCESS;
    case "failure":
      return WireResult.FAILURE;
    case "cancelled":
      return WireResult.CANCELLED;
    case "skipped":
      return WireResult.SKIPPED;
    case null:
      return WireResult.UNSPECIFIED;
    default:
      return result satisfies never;
  }
}

/** The inverse of {@link toWireResult}; `null` while a task runs. */
export function fromWireResult(result: WireResult): Result | null {
  switch (result) {
    case WireResult.SUCCESS:
      return "success";
    case WireResult.FAILURE:
      return "failure";
    case WireResult.CANCELLED:
      return "cancelled";
    case WireResult.SKIPPED:
      return "skipped";
    default:
      return null;
  }
}

async function sealLog(
  taskId: bigint,
  text: string,
  { gitea, clock }: { readonly gitea: Gitea; readonly clock: Clock },
  signal: AbortSignal,
): Promise<void> {
  try {
    const { ackIndex } = await gitea.updateLog(
      { taskId, index: 0n, rows: [], noMore: false },
      { signal },
    );
    const time = timestampFromMs(clock.now());
    const rows = text.split("\n").map((content) => create(LogRowSchema, { time, content }));
    await gitea.updateLog({ taskId, index: ackIndex, rows, noMore: true }, { signal });
  } catch (error) {
    // The log was complete before us: nothing to add.
    if (error instanceof GiteaError && error.code === "log_sealed") return;
    throw error;
  }
}

function firstStart(steps: readonly StepSnapshot[], now: number): number {
  return steps.reduce((first, s) => s.startedAt > 0 ? Math.min(first, s.startedAt) : first, now);
}

/** A step as it was last forwarded, for a state that changes nothing. */
export function openStep(step: StepSnapshot) {
  const { startedAt, stoppedAt } = step;
  return create(StepStateSchema, {
    id: BigInt(step.id),
    result: toWireResult(step.result),
    ...(startedAt > 0 ? { startedAt: timestampFromMs(startedAt) } : {}),
    ...(stoppedAt > 0 ? { stoppedAt: timestampFromMs(stoppedAt) } : {}),
    logIndex: BigInt(step.logIndex),
    logLength: BigInt(step.logLength),
  });
}

function closedStep(step: StepSnapshot, now: number) {
  return openStep(
    step.result === null ? { ...step, result: "cancelled", stoppedAt: now } : step,
  );
}
