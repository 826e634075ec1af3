import type { Logger } from "../lib/logger.ts";
import type { Recorder } from "../controller/recorder.ts";
import type { Clock } from "../lib/clock.ts";
import { GiteaError } from "../controller/gitea.ts";
import { Code, codeName, ConnectError, type Interceptor } from "../clients/connect/error.ts";
import { assignmentOf } from "./admission.ts";
import { type CallObserver, TRACEPARENT } from "./call_observer.ts";

/**
 * Measures every call and maps what goes wrong: our own trouble and Gitea's is `unavailable`, and
 * `unauthenticated` never leaves the facade, because the official runner stops for good on it.
 */
export function callErrors(
  deps: {
    readonly logger: Logger;
    readonly recorder: Recorder;
    readonly clock: Clock;
    readonly onCall?: CallObserver | undefined;
  },
): Interceptor {
  const { logger, recorder, clock } = deps;
  return (next) => async (request) => {
    const started = clock.monotonic();
    const startedAt = clock.now();
    const done = (code: string) => {
      const method = request.method.name;
      const ms = clock.monotonic() - started;
      recorder.facadeRequest(method, code, ms / 1000);
      const assignment = assignmentOf(request.contextValues);
      if (assignment === null) return;
      const parent = request.header.get(TRACEPARENT);
      deps.onCall?.(assignment, { method, code, startedAt, endedAt: startedAt + ms, parent });
    };
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
