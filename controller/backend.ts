import type { AssignmentInfo } from "./model/assignment_info.ts";
import type { BackendName, ExecutorName } from "./model/ids.ts";
import type { ReasonCode } from "./model/reason.ts";

/** Labels and annotations of an executor, keys with their prefix. */
export interface Metadata {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** What a backend is asked to make. */
export interface ExecutorSpec {
  readonly name: ExecutorName;
  readonly metadata: Metadata;
  /** Launch environment, the same for every backend; holds the capability: never log it. */
  readonly environment: Readonly<Record<string, string>>;
  readonly assignment: AssignmentInfo;
}

/** How an executor ended; `detail` and `lastLines` are plain text for people. */
export interface Ending {
  readonly code: ReasonCode;
  readonly detail: string;
  readonly exitCode: number | null;
  readonly lastLines: readonly string[];
}

/** One executor as its backend sees it. */
export interface Executor {
  readonly name: ExecutorName;
  /** Never used again for another executor of the same name. */
  readonly uid: string;
  /** The backend's own word for its state, for people. */
  readonly phase: string;
  readonly metadata: Metadata;
  readonly createdAt: number;
  /** What the identity is bound to (Pod UID, sandbox id, user id); null until it is known. */
  readonly identityTarget: string | null;
  /**
   * Whether its identity is bound, as {@link Backend.list} has seen it; it may be older than the rest.
   * Absent where the backend cannot tell.
   */
  readonly identityBound?: boolean;
  /** Being deleted by somebody. */
  readonly terminating: boolean;
  /** Why it is being deleted, where the backend can tell: eviction, preemption. */
  readonly deletion?: string;
  /** Null while it runs. */
  readonly ended: Ending | null;
  /** The durable terminal marker is set. */
  readonly terminal: boolean;
  readonly node: string | null;
  /** Why it does not run yet, if the backend knows. */
  readonly waiting: { readonly code: ReasonCode; readonly detail: string } | null;
}

/** A change seen by {@link Backend.watch}: look at this executor again. */
export interface ExecutorChange {
  readonly name: ExecutorName;
  /** Null when it is gone. */
  readonly executor: Executor | null;
}

/** How an end is noticed that a backend does not tell; milliseconds. */
export interface UntoldEnds {
  /** Silence of an executor that counts as its end. */
  readonly silenceMs: number;
  /** For so long one whose gate has said goodbye may go on being called running; then it is deleted. */
  readonly leavingMs: number;
}

/** Options of every port method. */
export interface Call {
  readonly signal: AbortSignal;
}

/**
 * Where executors live. Every method may be repeated. All throw {@link BackendError}; aborting the
 * signal rejects with the signal's reason and leaves the backend as it is.
 */
export interface Backend {
  readonly name: BackendName;
  /** Present where an executor whose program has ended may be called running until it is deleted. */
  readonly untoldEnds?: UntoldEnds;
  /** True where nobody takes an identity away again: an executor without one has never had any. */
  readonly bindsForGood?: boolean;
  /** The executor of that name, or undefined. */
  find(name: ExecutorName, call: Call): Promise<Executor | undefined>;
  /** Makes it. Code `conflict` if the name is taken (by whomsoever), `unknown_outcome` if the answer was lost. */
  create(spec: ExecutorSpec, call: Call): Promise<Executor>;
  /** Gives exactly this executor the SPIFFE ID of the assignment. Idempotent. */
  bindIdentity(executor: Executor, assignment: AssignmentInfo, call: Call): Promise<void>;
  /** Sets the durable marker. Idempotent; does nothing when the executor is gone. */
  markTerminal(executor: Pick<Executor, "name" | "uid">, call: Call): Promise<void>;
  /** Every object with our labels, also those that cannot be read: the caller judges them. */
  list(call: Call): Promise<Executor[]>;
  /**
   * Deletes seconds of one executor that the last {@link list} has met; lost answers leave them. Absent
   * where there cannot be any.
   */
  tidy?(call: Call): Promise<void>;
  /**
   * Names of what else is where our executors live, without our labels. Absent where a backend's place
   * cannot have anything else.
   */
  others?(call: Call): Promise<readonly string[]>;
  /** Changes from now on; ends when the signal aborts. Lost events are made good by {@link list}. */
  watch(call: Call): AsyncIterable<ExecutorChange>;
  /** Deletes exactly this one (UID precondition) and its identity entry. Absent is success. */
  delete(executor: Pick<Executor, "name" | "uid">, call: Call): Promise<void>;
}

/** Codes of {@link BackendError}. */
export type BackendErrorCode =
  | "conflict"
  | "unknown_outcome"
  | "quota"
  | "refused"
  | "unavailable"
  | "invalid";

/** A backend said no, or did not answer. */
export class BackendError extends Error {
  override readonly name = "BackendError";
  /** What kind of no. */
  readonly code: BackendErrorCode;
  /** False when trying again cannot help. */
  readonly retryable: boolean;

  /** `message`: action first, no full stop. */
  constructor(
    code: BackendErrorCode,
    message: string,
    options: { retryable?: boolean; cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.code = code;
    this.retryable = options.retryable ?? true;
  }
}
