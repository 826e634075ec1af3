import type { AssignmentId } from "../controller/model/ids.ts";
import type { ToldCall } from "../controller/traces/executor_reports.ts";

/** Is told of every call of an authenticated executor, once it is answered. Must not throw. */
export type CallObserver = (assignment: AssignmentId, call: ToldCall) => void;

/** Header of W3C Trace Context by which a gate names its span. */
export const TRACEPARENT = "traceparent";
