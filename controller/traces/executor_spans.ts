import type { GatePhase } from "../model/gate_phase.ts";
import type { ChildSpan, Span } from "./span.ts";
import { type SpanContext, type SpanId, spanIdOf } from "./trace_context.ts";

/** One call of an executor at the facade. */
export interface FacadeCall {
  readonly method: string;
  /** Of Connect, in lower case; `ok`, or an HTTP status for the gate's own calls. */
  readonly code: string;
  readonly startedAt: number;
  readonly endedAt: number;
}

/** What the gate has told of its own way, and what the facade has seen of its calls. */
export interface ExecutorReport {
  /** Null when the gate was lost before it could tell. */
  readonly gate: {
    readonly startedAt: number;
    readonly endedAt: number;
    readonly code: number;
    /** When each was reached, milliseconds since the gate's start. */
    readonly phases: ReadonlyMap<GatePhase, number>;
  } | null;
  /** The span that the gate names as its own; null when it names none of this trace. */
  readonly spanId: SpanId | null;
  readonly calls: readonly FacadeCall[];
  /** How many calls there were, by method: not all of them have a span. */
  readonly counts: ReadonlyMap<string, number>;
}

/** The part of the gate's way in which the job runs. */
export const RUNNER_WORKS = "runner works";

/** A part of the gate's way: from the last of some moments to another one. */
const PARTS: readonly {
  readonly name: string;
  readonly from: readonly GatePhase[];
  readonly to: GatePhase;
}[] = [
  { name: "gate svid", from: [], to: "svid" },
  { name: "gate meets facade", from: ["svid"], to: "facade" },
  { name: "gate prepares runner", from: [], to: "prepared" },
  { name: "runner starts", from: ["facade", "prepared"], to: "declare" },
  { name: "runner gets task", from: ["declare"], to: "task" },
  { name: RUNNER_WORKS, from: ["task"], to: "runner_ended" },
  { name: "gate delivers", from: ["runner_ended"], to: "ended" },
];

/** The executor's part of a trace: its gate's way, and calls at the facade below it. */
export function executorSpans(
  trace: SpanContext,
  report: ExecutorReport,
  make: {
    child(span: ChildSpan): Span;
    readonly executor: string | null;
    /** Spans that the trace has already. */
    readonly taken: ReadonlySet<SpanId>;
  },
): Span[] {
  const { gate, calls, counts } = report;
  // A gate that passes on what it was given names the root: then it would be its own parent.
  const named = report.spanId !== null && !make.taken.has(report.spanId) ? report.spanId : null;
  const own = named ?? spanIdOf(trace.traceId, "executor");
  const attributes = Object.fromEntries(
    [...counts].map(([method, count]) => [`gdr.facade.calls.${method}`, count]),
  );
  const gateSpans = gate === null ? [] : [
    make.child({
      name: "executor",
      spanId: own,
      startedAt: gate.startedAt,
      endedAt: gate.endedAt,
      attributes: {
        ...attributes,
        "gdr.executor": make.executor,
        "gdr.gate.exit_code": gate.code,
      },
      error: gate.code === 0 ? null : `the gate ended with exit code ${gate.code}`,
    }),
    ...PARTS.flatMap(({ name, from, to }) => {
      const end = gate.phases.get(to);
      const starts = from.map((phase) => gate.phases.get(phase));
      if (end === undefined || starts.includes(undefined)) return [];
      const start = Math.max(0, ...starts.map((at) => at ?? 0));
      return [make.child({
        name,
        parentSpanId: own,
        startedAt: gate.startedAt + start,
        endedAt: gate.startedAt + end,
      })];
    }),
  ];
  return [
    ...gateSpans,
    ...calls.map((call, i) =>
      make.child({
        name: `facade ${call.method}`,
        spanId: spanIdOf(trace.traceId, "facade", i, call.startedAt),
        // A parent that is never sent would leave the call without a place.
        parentSpanId: gate === null ? trace.spanId : own,
        kind: "server",
        startedAt: call.startedAt,
        endedAt: call.endedAt,
        attributes: { "rpc.method": call.method, "gdr.facade.code": call.code },
        error: isFine(call.code) ? null : `answered ${call.code}`,
      })
    ),
  ];
}

function isFine(code: string): boolean {
  return code === "ok" || code.startsWith("2");
}
