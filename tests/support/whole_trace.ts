import type { ReceivedSpan, TraceReceiver } from "./trace_receiver.ts";

/** Spans of a job that went its whole way in one controller. */
export const WHOLE_TRACE: readonly string[] = [
  ...["assignment", "store", "queued", "admission", "create", "identity", "start", "hand_over"],
  ...["run", "clean_up", "step 0", "executor", "gate svid", "runner works", "gate delivers"],
  ...["facade FetchTask", "facade UpdateTask", "facade exit"],
];

/** The spans of an assignment's trace, by its root; empty when there is none. */
export function traceOf({ spans }: Pick<TraceReceiver, "spans">, id: string): ReceivedSpan[] {
  const root = spans.find(({ attributes }) => attributes["gdr.assignment"] === id);
  return spans.filter(({ traceId }) => traceId === root?.traceId);
}

/** Why these spans are not one tree with all of `names` in it; empty when they are. */
export function flawsOf(
  spans: readonly Pick<
    ReceivedSpan,
    "name" | "spanId" | "parentSpanId" | "startedAt" | "endedAt"
  >[],
  names: readonly string[],
): string[] {
  const roots = spans.filter(({ parentSpanId }) => parentSpanId === "").length;
  const ids = new Set(spans.map(({ spanId }) => spanId));
  const have = new Set(spans.map(({ name }) => name));
  return [
    ...roots === 1 ? [] : [`${roots} roots`],
    ...ids.size === spans.length ? [] : ["a span came twice"],
    ...spans.filter(({ parentSpanId }) => parentSpanId !== "" && !ids.has(parentSpanId))
      .map(({ name }) => `"${name}" hangs nowhere`),
    ...spans.filter(({ startedAt, endedAt }) => endedAt < startedAt)
      .map(({ name }) => `"${name}" ends before it begins`),
    ...names.filter((name) => !have.has(name)).map((name) => `no span "${name}"`),
  ];
}
