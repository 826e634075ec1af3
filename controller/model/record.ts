import type { BackendName, ExecutorName } from "./ids.ts";
import type { Result } from "./reason.ts";

/** One step as last forwarded to Gitea; times are milliseconds since the epoch, 0 = unset. */
export interface StepSnapshot {
  readonly id: number;
  readonly result: Result | null;
  readonly startedAt: number;
  readonly stoppedAt: number;
  /** Already shifted by the record's `logOffset`: Gitea's own row numbers. */
  readonly logIndex: number;
  readonly logLength: number;
}

/** Which executor, and which gate instance inside it, was handed the task. */
export interface Claim {
  readonly executor: ExecutorName;
  /** The gate's random instance id. */
  readonly gate: string;
  readonly at: number;
}

/** The end that an executor has reported, as Gitea is to be told of it. */
export interface ReportedEnd {
  readonly result: Result;
  readonly steps: readonly StepSnapshot[];
  /** Why the result is not what the runner said, or who brought it about: the log's last row. */
  readonly row: string | null;
  readonly at: number;
}

/**
 * `task.<id>` in the KV bucket: what must not be lost or decided twice about one task. Written by
 * compare-and-set, never holds a secret, deleted after both message and executor are gone.
 */
export interface TaskRecord {
  readonly backend: BackendName;
  readonly repository: string;
  readonly job: string;
  /** As in `AssignmentInfo`; absent from earlier releases. */
  readonly ref?: string;
  readonly spiffeId: string;
  readonly fork: boolean;
  readonly runId: string | null;
  readonly giteaUrl: string | null;
  readonly serverUrl: string | null;
  /** When JetStream stored the message, milliseconds since the epoch. */
  readonly storedAt: number;
  /** Random, part of the executor's signature; a new one for each executor made. */
  readonly nonce: string;
  /** UID of the executor made for this task; null until the create was answered. */
  readonly uid: string | null;
  readonly claimedBy: Claim | null;
  /** Rows that stood in the job's log before the claim: the runner's row 0 is Gitea's row `logOffset`. */
  readonly logOffset: number;
  readonly steps: readonly StepSnapshot[];
  /** Executors that failed before the claim. */
  readonly failures: number;
  /** Not tried before this time; null when not parked. */
  readonly parkedUntil: number | null;
  /** An operator gave the executor up (`forget`) at this time. */
  readonly released: number | null;
  /**
   * Written before the log is sealed, so that a job whose executor and controller are lost before
   * Gitea has taken the final state ends as it did. Absent until then, and from earlier releases.
   */
  readonly reported?: ReportedEnd;
  /** The final state that Gitea accepted; null until then. */
  readonly terminal: { readonly result: Result; readonly at: number } | null;
  /** Epoch of the leader that wrote this; an older epoch's write is refused. */
  readonly epoch: number;
}
