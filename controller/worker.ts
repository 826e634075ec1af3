import type { Backend, Executor, Metadata } from "./backend.ts";
import type { Entry } from "./entry.ts";
import type { AssignmentInfo } from "./model/assignment_info.ts";
import type { ExecutorName } from "./model/ids.ts";
import type { ReasonCode } from "./model/reason.ts";

/** Labels, annotations and signature of executors; who may call an object ours. */
export interface Ownership {
  /** Metadata of the executor of an assignment, signed with the record's nonce. */
  compose(name: ExecutorName, info: AssignmentInfo, nonce: string): Promise<Metadata>;
  /** True if the object's signature is ours for this name and nonce. */
  verify(name: ExecutorName, metadata: Metadata, nonce: string): Promise<boolean>;
}

/** What became of one `accept`. */
export type Outcome =
  | { readonly kind: "ready"; readonly executor: Executor }
  | { readonly kind: "not_ready"; readonly code: ReasonCode; readonly detail: string }
  | {
    readonly kind: "backend_failed";
    readonly code: ReasonCode;
    readonly detail: string;
    readonly executor: "none" | "possible";
  }
  | {
    readonly kind: "executor_failed";
    readonly code: ReasonCode;
    readonly detail: string;
    readonly failures: number;
    readonly lastLines: readonly string[];
  }
  /** The record says that this executor was handed the job: nothing is made any more. */
  | { readonly kind: "claimed"; readonly executor: ExecutorName };

/** Finds or makes the executor of an assignment and gives it its identity. */
export interface Worker {
  readonly backend: Backend;
  /** The executor's name: a function of instance and assignment. */
  nameOf(info: AssignmentInfo): ExecutorName;
  /**
   * One round: find, create if absent, bind. `seen` is called as soon as the executor is known to
   * exist. Expected troubles are outcomes; throws on abort, and when the record cannot be written.
   */
  accept(entry: Entry, seen: (executor: Executor) => void, signal: AbortSignal): Promise<Outcome>;
  /** True if this object is the assignment's executor: by its UID, or by its signature before one is known. */
  isOurs(entry: Entry, executor: Executor): Promise<boolean>;
  /** True if it is a second one of the assignment, to be deleted. */
  isSpare(entry: Entry, executor: Executor): Promise<boolean>;
  /** Deletes the executor of an assignment if it is there and ours; `leaving` while it still is. */
  remove(entry: Entry, signal: AbortSignal): Promise<"gone" | "leaving">;
  /** Whether the executor is still there, without another deletion: one question. */
  remains(entry: Entry, signal: AbortSignal): Promise<"gone" | "leaving">;
}
