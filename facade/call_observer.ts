import type { AssignmentId } from "../controller/model/ids.ts";
import type { Recorder } from "../controller/recorder.ts";
import type { ToldCall } from "../controller/traces/executor_reports.ts";
import type { Clock } from "../lib/clock.ts";

/** Is told of every call of an authenticated executor, once it is answered. Must not throw. */
export type CallObserver = (assignment: AssignmentId, call: ToldCall) => void;

/** Header of W3C Trace Context by which a gate names its span. */
export const TRACEPARENT = "traceparent";

/** Who is told of calls. */
export interface CallListeners {
  readonly recorder: Recorder;
  readonly clock: Clock;
  readonly onCall?: CallObserver | undefined;
}

/** A call that has been answered; `assignment` is null for a caller whom nobody knows. */
export type AnsweredCall = Pick<ToldCall, "method" | "code" | "parent"> & {
  readonly assignment: AssignmentId | null;
};

/** Begins to time a call. What it returns measures the call and tells of it; call it once. */
export function timeCall({ recorder, clock, onCall }: CallListeners): (call: AnsweredCall) => void {
  const started = clock.monotonic();
  const startedAt = clock.now();
  return ({ assignment, ...call }) => {
    const ms = clock.monotonic() - started;
    recorder.facadeRequest(call.method, call.code, ms / 1000);
    if (assignment !== null) onCall?.(assignment, { ...call, startedAt, endedAt: startedAt + ms });
  };
}
