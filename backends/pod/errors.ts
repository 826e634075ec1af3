import { BackendError, type BackendErrorCode } from "../../controller/backend.ts";
import { oneLine } from "../../lib/one_line.ts";
import { ClusterError } from "./cluster.ts";

/**
 * What a failed call means for the executor. `action`: what was tried, with the executor's name. Only
 * `quota`, `refused` and `invalid` say that surely nothing was done.
 */
export function toBackendError(action: string, error: unknown): BackendError {
  if (error instanceof BackendError) return error;
  if (!(error instanceof ClusterError)) {
    const why = error instanceof Error ? error.message : String(error);
    return new BackendError("unavailable", `${action}: ${oneLine(why)}`, { cause: error });
  }
  const quota = error.code === "forbidden" ? quotaOf(error.message) : undefined;
  if (quota !== undefined) {
    return new BackendError("quota", `${action}: ${quota}`, { cause: error });
  }
  const code = CODES[error.code];
  return new BackendError(code, `${action}: ${oneLine(error.message, 400)}`, {
    retryable: code !== "invalid",
    cause: error,
  });
}

/** Which ResourceQuota is used up, in words; undefined when the refusal has another cause. */
function quotaOf(message: string): string | undefined {
  const match = /exceeded quota: ([^,\s]+)(?:, requested: (.+?), used: (.+?), limited: (.+))?$/s
    .exec(message.trim());
  if (match === null) return undefined;
  const [, name, requested, used, limited] = match;
  return requested === undefined ? `quota "${name}" is used up` : oneLine(
    `quota "${name}" is used up: requested ${requested}, used ${used} of ${limited}`,
    400,
  );
}

const CODES: Readonly<Record<ClusterError["code"], BackendErrorCode>> = {
  not_found: "refused",
  already_exists: "conflict",
  conflict: "unavailable",
  forbidden: "refused",
  unauthorized: "refused",
  invalid: "invalid",
  throttled: "unavailable",
  unknown_outcome: "unknown_outcome",
};
