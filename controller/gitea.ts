import type {
  FetchTaskResponse,
  LogRow,
  TaskState,
  UpdateLogResponse,
  UpdateTaskResponse,
} from "../proto/gen/runner/v1/messages_pb.ts";
import type { Call } from "./backend.ts";

/** Gitea's RunnerService with our permanent registration. Throws {@link GiteaError}. */
export interface Gitea {
  /** Overwrites version, labels (bare names) and capabilities; resolves to Gitea's capability header. */
  declare(
    runner: {
      readonly version: string;
      readonly labels: readonly string[];
      readonly capabilities: readonly string[];
    },
    call: Call,
  ): Promise<{ readonly serverCapabilities: string | null }>;
  /** Answers at once. `tasksVersion` 0 forces a look for tasks. */
  fetchTask(tasksVersion: bigint, call: Call): Promise<FetchTaskResponse>;
  /** `state.result` 0 is a heartbeat. */
  updateTask(
    update: { readonly state: TaskState; readonly outputs?: Readonly<Record<string, string>> },
    call: Call,
  ): Promise<UpdateTaskResponse>;
  /** Rows from `index` on; a gap stores nothing and returns the old ack. */
  updateLog(
    update: {
      readonly taskId: bigint;
      readonly index: bigint;
      readonly rows: readonly LogRow[];
      readonly noMore: boolean;
    },
    call: Call,
  ): Promise<UpdateLogResponse>;
}

/** What Gitea's error texts mean; measured on 1.26 and 1.27 (all come as HTTP 500, code unknown). */
export type GiteaErrorCode =
  /** "unregistered runner": wrong uuid or token, or the runner was deleted. */
  | "unauthenticated"
  /** "invalid runner for task": the task is another runner's. */
  | "foreign_task"
  /** "resource does not exist". */
  | "not_found"
  /** "log file has been archived": rows after no_more. */
  | "log_sealed"
  /** "runner registration token not found". */
  | "bad_registration_token"
  /** Anything else with an answer from Gitea. */
  | "internal"
  /** The message is larger than Gitea (or a proxy) takes. */
  | "too_large"
  /** No Gitea there: wrong URL, HTML instead of an answer, 404. */
  | "not_gitea"
  /** No answer: refused, reset, timed out, DNS, TLS. */
  | "unavailable";

/** Gitea said no, or did not answer. */
export class GiteaError extends Error {
  override readonly name = "GiteaError";
  /** Which no. */
  readonly code: GiteaErrorCode;
  /** False when trying again cannot help. */
  readonly retryable: boolean;

  /** `message`: action first, no full stop. */
  constructor(code: GiteaErrorCode, message: string, options: { cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.code = code;
    this.retryable = code === "internal" || code === "unavailable" || code === "not_gitea";
  }
}
