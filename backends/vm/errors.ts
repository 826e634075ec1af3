import { BackendError, type BackendErrorCode } from "../../controller/backend.ts";
import { messageOf } from "../../lib/error_text.ts";
import { oneLine } from "../../lib/one_line.ts";
import { SandboxError, type SandboxErrorCode } from "./sandboxes.ts";

/**
 * What a failed call means for the executor. `action`: what was tried, with the executor's name. Only
 * `quota`, `refused` and `invalid` say that surely nothing was done: after a create, `start_failed` and
 * `start_timeout` come here when a look has found that nothing is left.
 */
export function toBackendError(action: string, error: unknown): BackendError {
  if (error instanceof BackendError) return error;
  const message = `${action}: ${oneLine(messageOf(error), 500)}`;
  if (!(error instanceof SandboxError)) {
    return new BackendError("unavailable", message, { cause: error });
  }
  const code = CODES[error.code];
  return new BackendError(code, message, { retryable: code !== "invalid", cause: error });
}

/** The same for a call that only reads, or that may be repeated whatever became of it. */
export function toReadError(action: string, error: unknown): BackendError {
  const failed = toBackendError(action, error);
  return failed.code === "unknown_outcome"
    ? new BackendError("unavailable", failed.message, { cause: error })
    : failed;
}

const CODES: Readonly<Record<SandboxErrorCode, BackendErrorCode>> = {
  pool_full: "quota",
  pool_missing: "refused",
  quota: "quota",
  unauthorized: "refused",
  forbidden: "refused",
  invalid: "invalid",
  throttled: "refused",
  unreachable: "refused",
  start_failed: "refused",
  start_timeout: "quota",
  unknown_outcome: "unknown_outcome",
};
