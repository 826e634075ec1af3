import assert from "node:assert/strict";
import { BackendError, type BackendErrorCode } from "../../controller/backend.ts";

/** The error that `attempt` rejects with. Fails when it resolves, or rejects with another kind of error. */
export async function rejection<E extends Error>(
  kind: abstract new (...args: never[]) => E,
  attempt: Promise<unknown>,
): Promise<E> {
  const error = await attempt.then(() => undefined, (error: unknown) => error);
  assert.ok(error instanceof kind, String(error));
  return error;
}

/** As {@link rejection} of a {@link BackendError}. */
export function refusal(attempt: Promise<unknown>): Promise<BackendError> {
  return rejection(BackendError, attempt);
}

/** Rejects unless `attempt` is refused with a {@link BackendError} of that code. */
export async function rejectsWith(
  code: BackendErrorCode,
  attempt: Promise<unknown>,
): Promise<void> {
  const error = await refusal(attempt);
  assert.equal(error.code, code, String(error));
}
