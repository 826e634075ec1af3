import type { AssignmentInfo } from "./model/assignment_info.ts";
import type { GatePhases } from "./model/gate_phase.ts";
import type { AssignmentId } from "./model/ids.ts";
import type { Claim, ReportedEnd, StepSnapshot } from "./model/record.ts";
import type { Result } from "./model/reason.ts";
import type { Task } from "../proto/gen/runner/v1/messages_pb.ts";

/** What the controller lays out for executors at the facade. */
export interface Offers {
  /** Idempotent for the same task; returns `conflict` when another task or identity holds the id. */
  offer(info: AssignmentInfo, task: Task): "offered" | "conflict";
  /**
   * An executor of ours is there, and the record of its assignment is lost: what its gate says of
   * itself is passed on as {@link ExecutorEvents.shown}, everything else is told to come again. Ends
   * when the assignment is offered, restored or removed.
   */
  expectProof(info: AssignmentInfo): void;
  /**
   * Restores a claimed one after a restart. `task` is given while its message is not acknowledged:
   * the claiming gate may never have got the answer, and may ask for it again until its first report.
   */
  recoverClaimed(
    info: AssignmentInfo,
    claim: {
      readonly claim: Claim;
      readonly logOffset: number;
      readonly steps: readonly StepSnapshot[];
      readonly task: Task | null;
    },
  ): void;
  /**
   * Tells the runner of a claimed one, in the answers to its reports, that its job is to end; `why`
   * goes into the job's log. Idempotent; the controller asks again after a restart.
   */
  cancel(id: AssignmentId, why: string): void;
  /**
   * For an executor that is lost: brings to Gitea the final state that it had reported here and that
   * Gitea has not taken. Resolves to the stored result; to null when it had reported none. Throws
   * `GiteaError` when it should be tried again, or the signal's reason.
   */
  conclude(id: AssignmentId, signal: AbortSignal): Promise<Result | null>;
  /** Forgets it: later calls of its executor are refused (late log rows are forwarded for 60 s). */
  remove(id: AssignmentId): void;
}

/** Answer to a claim. `wait` = not now, ask again; `refused` = never. */
export type ClaimAnswer =
  | { readonly kind: "granted"; readonly logOffset: number }
  | { readonly kind: "wait" }
  | { readonly kind: "refused"; readonly why: string };

/** What a gate says every 10 s. */
export interface Heartbeat {
  readonly gate: string;
  /** True once its runner has the task. */
  readonly holdsTask: boolean;
}

/** What the gate of an executor without record has shown: by its heartbeat, or by what it asks for. */
export type Shown =
  /** It was handed its task, and the runner's row 0 is Gitea's row `logOffset`. */
  | { readonly kind: "holds"; readonly logOffset: number }
  /** It holds the task and cannot tell where the log began: a gate of an earlier release. */
  | { readonly kind: "holds_somewhere" }
  /** It asks for its task: so its runner was not handed it. */
  | { readonly kind: "asks" };

/**
 * What the facade tells the controller, and asks of it. The facade has authenticated the caller
 * (SPIFFE ID and capability) for exactly this assignment. Never throws but on abort.
 */
export interface ExecutorEvents {
  /**
   * The executor's runner asks for its task. Records the claim (compare-and-set) and the log offset
   * before it answers `granted`; waits up to the signal for the assignment to become ready.
   */
  claim(id: AssignmentId, gate: string, signal: AbortSignal): Promise<ClaimAnswer>;
  /** First Update* after a claim was forwarded: the runner surely holds the task. */
  updated(id: AssignmentId): void;
  /** Gitea has taken rows of the job's log. */
  rowsForwarded?(id: AssignmentId): void;
  /** Steps as last forwarded to Gitea, indexes shifted. */
  stepsForwarded(id: AssignmentId, steps: readonly StepSnapshot[]): void;
  /**
   * The runner has reported the end of its job, and Gitea is told next: first that it can take no
   * more of the log. Resolves when it is recorded, or could not be in time: that holds up no job's
   * end. Rejects with the signal's reason, or when this process may not act any more.
   */
  endReported?(
    id: AssignmentId,
    end: Omit<ReportedEnd, "at">,
    signal: AbortSignal,
  ): Promise<void>;
  /** Gitea says that the job has ended though its runner works on: the runner is told to stop. */
  endedAtGitea(id: AssignmentId): void;
  /** Gitea accepted the final UpdateTask (or said for good that the task is unknown). */
  finalAccepted(id: AssignmentId, result: Result): void;
  /** Of one that {@link Offers.expectProof} has announced; the caller is authenticated as it. */
  shown(id: AssignmentId, gate: string, shown: Shown): void;
  /** The gate lives. */
  heartbeat(id: AssignmentId, beat: Heartbeat): void;
  /** The executor is being terminated: a success that comes now is not believed. */
  terminating(id: AssignmentId, why: string): void;
  /** Why somebody else deletes the executor although it has the job, in words; null when nobody does. */
  whyDeleted?(id: AssignmentId): string | null;
  /** The gate is about to exit; `delivered` tells whether a final state was accepted. */
  exited(
    id: AssignmentId,
    exit: {
      readonly delivered: boolean;
      readonly code: number;
      readonly detail: string;
      /** What the gate says of its way: for traces alone, and to be believed by nobody else. */
      readonly phases?: GatePhases;
    },
  ): void;
}
