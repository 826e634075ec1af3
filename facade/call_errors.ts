import type { Logger } from "../lib/logger.ts";
import { GiteaError } from "../controller/gitea.ts";
import { Code, codeName, ConnectError, type Interceptor } from "../clients/connect/error.ts";
import { assignmentOf } from "./admission.ts";
import { type CallListeners, timeCall, TRACEPARENT } from "./call_observer.ts";

/**
 * Measures every call and maps what goes wrong: our own trouble and Gitea's is `unavailable`, and
 * `unauthenticated` never leaves the facade, because the official runner stops for good on it.
 */
export function callErrors(
  deps: CallListeners & { readonly logger: Logger },
): Interceptor {
  const { logger } = deps;
  return (next) => async (request) => {
    const answered = timeCall(deps);
    const done = (code: string) =>
      answered({
        method: request.method.name,
        code,
        assignment: assignmentOf(request.contextValues),
        parent: request.header.get(TRACEPARENT),
      });
    try {
      const answer = await next(request);
      done("ok");
      return answer;
    } catch (error) {
      const mapped = mapError(error, request.signal.aborted);
      if (mapped.code === Code.Unavailable) {
        logger.warn("executor's call failed", { method: request.method.name, error });
      }
      done(codeName(mapped.code));
      throw mapped;
    }
  };
}

/** What the caller is told about `error`; `aborted` when the caller itself has gone. */
function mapError(error: unknown, aborted = false): ConnectError {
  if (error instanceof GiteaError) {
    return error.code === "too_large"
      ? new ConnectError("the message is larger than Gitea takes", Code.ResourceExhausted)
      : new ConnectError("Gitea is not available to the controller", Code.Unavailable);
  }
  if (error instanceof ConnectError && error.code !== Code.Unauthenticated) return error;
  if (aborted) return new ConnectError("the call was cancelled", Code.Canceled);
  return new ConnectError("the controller is in trouble: try again", Code.Unavailable);
}
