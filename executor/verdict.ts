import { Result, type TaskState } from "../proto/gen/runner/v1/messages_pb.ts";

/** What is known when the runner sends its final state. */
export interface FinalFacts {
  readonly state: TaskState;
  /** Content of the last row that is not empty; null without rows. */
  readonly lastRow: string | null;
  /** What the runner called itself in Declare. */
  readonly runnerVersion: string;
  /** The facade said that the job is cancelled. */
  readonly cancelled: boolean;
  /** Why this executor is being stopped; null if it is not. */
  readonly terminating: string | null;
}

/** The result to report; `row` is appended to the job's log before it is sealed. */
export interface Verdict {
  readonly result: Result;
  readonly row: string | null;
}

/**
 * Judges a final state. The official runner reports success for a job that it was made to stop
 * (SIGTERM, its own shutdown time-out, a user's cancel); such a log ends with the row `context
 * canceled`, where a real success ends with `Job succeeded`. Version 1.0.8 also tells by a success
 * with a cancelled step. Every other result is passed on (measured with 1.0.8 and 3.1.0).
 *
 * The facade judges once more (`facade/verdict.ts`): it knows less, neither the steps nor what runner
 * this is, but it does not run where the job runs.
 */
export function judge(facts: FinalFacts): Verdict {
  const { result, steps } = facts.state;
  if (result !== Result.SUCCESS) return { result, row: null };
  const cancelledStep = /^v?1\.0\.8$/.test(facts.runnerVersion) &&
    steps.some((step) => step.result === Result.CANCELLED);
  if (facts.lastRow !== "context canceled" && !cancelledStep) return { result, row: null };
  if (facts.cancelled) return { result: Result.CANCELLED, row: null };
  const why = facts.terminating ?? "its runner was told to stop";
  return {
    result: Result.FAILURE,
    row: `Error: this job was interrupted before its end: ${why}. It is recorded as failed.`,
  };
}
