import { ownProperty } from "../../lib/json_object.ts";
import type { Task } from "../../proto/gen/runner/v1/messages_pb.ts";
import type { StepSnapshot } from "./record.ts";
import { jobOf } from "./workflow.ts";

/** Steps beyond this are not reported by states that the controller sends itself. */
const MAX_STEPS = 1_000;

/**
 * How many steps the task's job has; 0 when its workflow cannot be read. Gitea matches the steps of a
 * state by their index in the job.
 */
export function stepsOf(task: Task): number {
  const payload = task.workflowPayload;
  const job = task.context?.["job"];
  if (payload === undefined || typeof job !== "string") return 0;
  try {
    const steps = ownProperty(jobOf(payload, job), "steps");
    return Array.isArray(steps) ? Math.min(steps.length, MAX_STEPS) : 0;
  } catch {
    return 0; // The job is refused elsewhere, with the reason.
  }
}

/** So many steps that nobody has begun. */
export function unstartedSteps(count: number): StepSnapshot[] {
  return Array.from({ length: count }, (_, id) => ({
    id,
    result: null,
    startedAt: 0,
    stoppedAt: 0,
    logIndex: 0,
    logLength: 0,
  }));
}
