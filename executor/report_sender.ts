import type {
  UpdateLogRequest,
  UpdateLogResponse,
  UpdateTaskRequest,
  UpdateTaskResponse,
} from "../proto/gen/runner/v1/messages_pb.ts";

/** What came of one call to the facade. */
export type Sent<T> =
  | { readonly kind: "accepted"; readonly value: T }
  /** No answer, or one that says "later". */
  | { readonly kind: "later"; readonly why: string }
  /** Not in one piece: facade, Gitea or a proxy between them takes no message of this size. */
  | { readonly kind: "too_large"; readonly why: string }
  /** Never. `sealed`: the log takes no more rows, the state may still be taken. */
  | { readonly kind: "refused"; readonly why: string; readonly sealed: boolean };

/** The facade, as the outbox needs it. Both reject only with the signal's reason. */
export interface ReportSender {
  updateLog(request: UpdateLogRequest, call: Call): Promise<Sent<UpdateLogResponse>>;
  updateTask(request: UpdateTaskRequest, call: Call): Promise<Sent<UpdateTaskResponse>>;
}

/** Ends a call. */
export interface Call {
  readonly signal: AbortSignal;
}
