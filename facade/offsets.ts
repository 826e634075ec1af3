import { clone, timestampMs } from "../proto/runtime.ts";
import { type TaskState, TaskStateSchema } from "../proto/gen/runner/v1/messages_pb.ts";
import { fromWireResult } from "../controller/settle.ts";
import type { StepSnapshot } from "../controller/model/record.ts";

/**
 * Row numbers on both sides of the facade. While a task waits, the controller writes rows of its own
 * into the job's log; the runner, which knows nothing of them, counts from 0. So the runner's row `i`
 * is Gitea's row `i + offset`.
 */

/** Gitea's number of the runner's row. */
export function toGitea(row: bigint, offset: bigint): bigint {
  return row + offset;
}

/** The runner's number of Gitea's row; rows before the claim are none of its business. */
export function toRunner(row: bigint, offset: bigint): bigint {
  return row > offset ? row - offset : 0n;
}

/** A copy of the state with the steps' log positions in Gitea's numbers. */
export function shiftSteps(state: TaskState, offset: bigint): TaskState {
  const shifted = clone(TaskStateSchema, state);
  for (const step of shifted.steps) step.logIndex = toGitea(step.logIndex, offset);
  return shifted;
}

/** The steps of a state (already in Gitea's numbers), as the record keeps them. */
export function snapshotSteps(state: TaskState): StepSnapshot[] {
  return state.steps.map((step) => ({
    id: Number(step.id),
    result: fromWireResult(step.result),
    startedAt: step.startedAt === undefined ? 0 : timestampMs(step.startedAt),
    stoppedAt: step.stoppedAt === undefined ? 0 : timestampMs(step.stoppedAt),
    logIndex: Number(step.logIndex),
    logLength: Number(step.logLength),
  }));
}
