import type { Logger } from "../lib/logger.ts";
import type { Recorder } from "../controller/recorder.ts";
import type { Clock } from "../lib/clock.ts";
import { GiteaError } from "../controller/gitea.ts";
import { Code, codeName, ConnectError, type Interceptor } from "../clients/connect/error.ts";

/**
 * Measures every call and maps what goes wrong: our own trouble and Gitea's is `unavailable`, and
 * `unauthenticated` never leaves the facade, because the official runner stops for good on it.
 */
export function callErrors(
  deps: { readonly logger: Logger; readonly recorder: Recorder; readonly clock: Clock },
): Interceptor {
  const { logger, recorder, clock } = deps;
  return (next) => async (request) => {
    const started = clock.monotonic();
    const done = (code: string) =>
      recorder.facadeRequest(request.method.name, code, (clock.monotonic() - started) / 1000);
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
