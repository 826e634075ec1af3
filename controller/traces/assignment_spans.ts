import type { JournalEntry } from "../journal.ts";
import type { AssignmentInfo } from "../model/assignment_info.ts";
import type { StepSnapshot } from "../model/record.ts";
import type { Reason, Result } from "../model/reason.ts";
import { divide, type Moment } from "../views/moments.ts";
import { phasesOf } from "../views/phases.ts";
import { type ExecutorReport, executorSpans, RUNNER_WORKS } from "./executor_spans.ts";
import type { Attributes, ChildSpan, Span } from "./span.ts";
import { type SpanContext, spanIdOf } from "./trace_context.ts";

/** What is known of an assignment at its end. */
export interface AssignmentFacts {
  readonly info: AssignmentInfo;
  /** When Gitea had handed the task out; null when that was an earlier process. */
  readonly fetchedAt: number | null;
  readonly storedAt: number;
  readonly result: Result | null;
  readonly reason: Pick<Reason, "code" | "detail"> | null;
  /** Oldest first; the last one is the end. */
  readonly journal: readonly JournalEntry[];
  readonly moments: ReadonlyMap<Moment, number>;
  /** As last reported to Gitea. */
  readonly steps: readonly StepSnapshot[];
  readonly executor: { readonly name: string; readonly node: string | null } | null;
  /** What its gate and the facade have seen. */
  readonly report: ExecutorReport;
}

/** Of a longer history the first and last ones say enough; the events stream has them all. */
const MAX_EVENTS = 64;
const MAX_DETAIL = 300;
/** What an executor says of its steps is bounded by nothing else. */
const MAX_STEPS = 1_000;
/** An executor's clock may be wrong; a step of another year is no part of this trace. */
const STEP_LEEWAY_MS = 24 * 3_600_000;

/**
 * The whole trace of an assignment that has ended: its root, from the hand-out by Gitea to the clean-up,
 * the phases of its way, its steps, and its executor's part. Names of attributes are those of
 * OpenTelemetry's semantic conventions for CI/CD where there are such, else `gdr.*`.
 */
export function assignmentSpans(trace: SpanContext, facts: AssignmentFacts): Span[] {
  const startedAt = facts.fetchedAt ?? facts.storedAt;
  const endedAt = Math.max(startedAt, facts.journal.at(-1)?.at ?? startedAt);
  const root: Span = {
    ...trace,
    parentSpanId: null,
    name: "assignment",
    kind: "consumer",
    startedAt,
    endedAt,
    attributes: rootAttributes(facts),
    events: eventsOf(facts.journal),
    error: errorOf(facts),
  };
  const child = (span: ChildSpan): Span => ({
    traceId: trace.traceId,
    spanId: spanIdOf(trace.traceId, span.name, span.startedAt),
    parentSpanId: trace.spanId,
    kind: "internal",
    attributes: {},
    events: [],
    error: null,
    ...span,
    endedAt: Math.max(span.startedAt, span.endedAt),
  });
  const { fetchedAt, storedAt } = facts;
  const stored = fetchedAt === null
    ? []
    : [child({ name: "store", kind: "producer", startedAt: fetchedAt, endedAt: storedAt })];
  const phases = divide(phasesOf(facts.journal, storedAt), facts.moments)
    .map((phase) => child({ ...phase, endedAt: phase.endedAt ?? endedAt }));
  const within = { from: startedAt - STEP_LEEWAY_MS, to: endedAt + STEP_LEEWAY_MS };
  const steps = shownSteps(facts.steps, within).map((step) => stepSpan(child, step));
  const own = [root, ...stored, ...phases];
  const taken = new Set([...own, ...steps].map(({ spanId }) => spanId));
  const executor = facts.executor?.name ?? null;
  const beside = executorSpans(trace, facts.report, { child, executor, taken });
  // Both by the executor's clock; `run` begins later, when the controller has heard of the runner.
  const around = beside.find(({ name }) => name === RUNNER_WORKS)?.spanId ?? trace.spanId;
  return [...own, ...beside, ...steps.map((step) => ({ ...step, parentSpanId: around }))];
}

/**
 * Steps that have ended, each index once, within these times. Numbers of an executor that no receiver
 * could read would cost all the spans that are sent with it.
 */
function shownSteps(
  steps: readonly StepSnapshot[],
  { from, to }: { readonly from: number; readonly to: number },
): StepSnapshot[] {
  const ended = steps.filter(({ id, startedAt, stoppedAt }) =>
    Number.isSafeInteger(id) && startedAt > 0 && startedAt >= from && startedAt <= to &&
    stoppedAt > 0 && stoppedAt <= to
  );
  return [...new Map(ended.map((step) => [step.id, step])).values()].slice(0, MAX_STEPS);
}

function stepSpan(
  child: (span: ChildSpan) => Span,
  { id, result, startedAt, stoppedAt }: StepSnapshot,
): Span {
  return child({
    name: `step ${id}`,
    startedAt,
    endedAt: stoppedAt,
    attributes: { "gdr.step": id, "cicd.pipeline.task.run.result": resultName(result) },
    error: result === "failure" ? "the step has failed" : null,
  });
}

function rootAttributes({ info, executor, result, reason }: AssignmentFacts): Attributes {
  return {
    "gdr.assignment": info.id,
    "gdr.backend": info.backend,
    "gdr.fork": info.identity.fork,
    "gdr.reason": reason?.code ?? null,
    "cicd.pipeline.task.name": info.job,
    "cicd.pipeline.task.run.id": info.taskId,
    "cicd.pipeline.task.run.url.full": info.giteaUrl,
    "cicd.pipeline.task.run.result": resultName(result),
    "cicd.pipeline.run.id": info.runId,
    "cicd.worker.name": executor?.name ?? null,
    "k8s.node.name": executor?.node ?? null,
    "vcs.repository.name": info.repository,
    "vcs.ref.head.name": info.ref ?? null,
  };
}

/** The words of the semantic conventions. */
function resultName(result: Result | null): string | null {
  return result === "cancelled" ? "cancellation" : result === "skipped" ? "skip" : result;
}

function errorOf({ result, reason }: AssignmentFacts): string | null {
  if (result !== "failure") return null;
  return reason === null ? "the job has failed" : `${reason.code}: ${reason.detail}`;
}

function eventsOf(journal: readonly JournalEntry[]): Span["events"] {
  const half = MAX_EVENTS / 2;
  const some = journal.length <= MAX_EVENTS
    ? journal
    : [...journal.slice(0, half), ...journal.slice(-half)];
  return some.map(({ at, event, executor, detail, retryDelayMs }) => ({
    at,
    name: event,
    attributes: {
      "gdr.executor": executor,
      "gdr.detail": detail === null ? null : detail.slice(0, MAX_DETAIL),
      "gdr.retry_delay_ms": retryDelayMs === 0 ? null : retryDelayMs,
    },
  }));
}
