import { QueueError, type QueueErrorCode } from "../../controller/queue.ts";

/** An error answer of the JetStream API. `errCode` is JetStream's own number. */
export interface ApiError {
  readonly kind: "error";
  readonly code: number;
  readonly errCode: number;
  readonly description: string;
}

/** Numbers of JetStream's errors that decide something here (nats-server's errors.json). */
export const ERR_CODE = {
  /** "consumer create": a field that cannot be changed differs. */
  consumerUnchangeable: 10012,
  consumerNotFound: 10014,
  noMessageFound: 10037,
  sequenceNotFound: 10043,
  messageDeleteFailed: 10057,
  streamNotFound: 10059,
  wrongLastSequence: 10071,
  storeFailed: 10077,
  /** A stream that reserves more than the server has; it will not have more before it is restarted. */
  storageExceeded: 10047,
  subjectsOverlap: 10065,
} as const;

const WAYS_OUT: ReadonlyMap<number, string> = new Map([
  [
    ERR_CODE.storageExceeded,
    "; free disk space, or raise the server's max_file_store or the account's limit, and restart it",
  ],
  [
    ERR_CODE.subjectsOverlap,
    "; set NATS_STREAM to the name of that stream, or NATS_SUBJECT_BASE to other subjects",
  ],
]);

/** Turns an API error into a {@link QueueError}; `action` begins the message. */
export function apiFailure(action: string, error: ApiError): QueueError {
  const number = error.errCode || error.code;
  const wayOut = WAYS_OUT.get(error.errCode) ?? "";
  const message = `${action}: ${error.description} (JetStream ${number})${wayOut}`;
  return new QueueError(codeOf(error), message, { retryable: isRetryable(error) });
}

function codeOf(error: ApiError): QueueErrorCode {
  if (error.errCode === ERR_CODE.wrongLastSequence) return "conflict";
  // "maximum messages exceeded" and its kin: the stream discards new ones when it is full.
  if (error.errCode === ERR_CODE.storeFailed || /^maximum/.test(error.description)) return "full";
  if (error.errCode === ERR_CODE.storageExceeded) return "refused";
  if (error.code === 503 || error.code === 500) return "unavailable";
  return "refused";
}

function isRetryable(error: ApiError): boolean {
  // A stream that is missing may be one that the server has not recovered yet.
  const code = codeOf(error);
  return code === "unavailable" || code === "full" || error.errCode === ERR_CODE.streamNotFound;
}

/** True for a failure that may be over at the next try. */
export function isTransient(error: unknown): boolean {
  return error instanceof QueueError && error.retryable;
}
