import { oneLine } from "../lib/one_line.ts";
import { Result } from "../proto/gen/runner/v1/messages_pb.ts";

/** What is known about a task when its final state comes. */
export interface FinalFacts {
  readonly result: Result;
  /** Content of the last log row that is not blank; null when none was seen by this process. */
  readonly lastRow: string | null;
  /** Why the executor is being terminated; null when it is not. */
  readonly terminating: string | null;
  /** Gitea has said that the task is cancelled. */
  readonly cancelled: boolean;
}

/** What is reported to Gitea; `row` goes into the log before it is sealed. */
export interface Verdict {
  readonly result: Result;
  readonly row: string | null;
}

/**
 * Judges a final state. The official runner reports success for a job that it was made to
 * stop: its log then ends with `context canceled`. A job that came to its own end while the executor
 * was being terminated says `Job succeeded` last, and is believed; any other success is not, once
 * the gate has said that the executor is being terminated. Measured on runner 1.0.8 and 3.1.0.
 *
 * The gate has judged before (`executor/verdict.ts`): it knows more, the steps and what runner it is,
 * but it runs where the job runs, so its word alone is not enough.
 */
export function judge({ result, lastRow, terminating, cancelled }: FinalFacts): Verdict {
  if (result !== Result.SUCCESS) return { result, row: null };
  const last = lastRow?.trim() ?? "";
  const stopped = last === "context canceled";
  if (!stopped && (terminating === null || last.endsWith("Job succeeded"))) {
    return { result, row: null };
  }
  if (cancelled) return { result: Result.CANCELLED, row: null };
  const why = terminating ?? "its runner was told to stop";
  return {
    result: Result.FAILURE,
    row: `Error: the job was interrupted: ${oneLine(why)}. Its success is recorded as a failure.`,
  };
}
