import type { GatePhase, GatePhases } from "../model/gate_phase.ts";
import type { ExecutorReport, FacadeCall } from "./executor_spans.ts";
import { parseTraceparent, type SpanContext, type SpanId } from "./trace_context.ts";

/** A call as the facade tells of it. */
export interface ToldCall extends FacadeCall {
  /** Header `traceparent`, as it came; null when there was none. */
  readonly parent: string | null;
}

/** How a gate ended, and what it says of its way. */
export interface ToldExit {
  readonly code: number;
  readonly phases: GatePhases;
}

/** Collects what is told of one assignment's executor. */
export interface ReportCollector {
  called(call: ToldCall): void;
  /** `now` and `earliest`: bounds that no gate's words may leave. */
  exited(exit: ToldExit, bounds: { readonly now: number; readonly earliest: number }): void;
  report(): ExecutorReport;
}

/** The first calls have the claim among them, the last ones the end of the job. */
const KEEP_FIRST = 16;
const KEEP_LAST = 16;
/** They come all the time, and say nothing new. */
const UNTOLD: ReadonlySet<string> = new Set(["UpdateLog", "heartbeat"]);

/** Makes a {@link ReportCollector}; what it keeps is bounded, however long the job runs. */
export function createReportCollector(trace: SpanContext): ReportCollector {
  const first: FacadeCall[] = [];
  const last: FacadeCall[] = [];
  const counts = new Map<string, number>();
  let spanId: SpanId | null = null;
  let gate: ExecutorReport["gate"] = null;
  return {
    called({ parent, ...call }) {
      const { method, code } = call;
      counts.set(method, (counts.get(method) ?? 0) + 1);
      const context = parent === null ? undefined : parseTraceparent(parent);
      // Who names another trace is not followed: a gate tells of its own job only.
      if (context?.traceId === trace.traceId) spanId = context.spanId;
      if (UNTOLD.has(method) && (code === "ok" || code === "204")) return;
      if (first.length < KEEP_FIRST) first.push(call);
      else last.push(call);
      if (last.length > KEEP_LAST) last.shift();
    },
    exited({ code, phases }, { now, earliest }) {
      const total = Math.min(phases.ended ?? 0, Math.max(0, now - earliest));
      const reached = Object.entries(phases) as [GatePhase, number][];
      gate = {
        startedAt: now - total,
        endedAt: now,
        code,
        phases: new Map(reached.filter(([, ms]) => ms <= total)),
      };
    },
    report: () => ({ gate, spanId, calls: [...first, ...last], counts }),
  };
}
