import type { HrTime } from "@opentelemetry/api";
import { SpanKind, SpanStatusCode, TraceFlags } from "@opentelemetry/api";
import { type Resource, resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor, type ReadableSpan } from "@opentelemetry/sdk-trace";
import type { Attributes, Span, SpanSink } from "../../controller/traces/span.ts";
import { abortable } from "../../lib/abortable.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/logger.ts";
import { createOtlpExporter, type Receiver } from "./otlp_exporter.ts";

/** Where spans go, and from whom. */
export interface SpanSinkOptions extends Receiver {
  /** Attributes of who sends them, `service.name` among them. */
  readonly resource: Readonly<Record<string, string>>;
  /** Of this program. */
  readonly version: string;
  /** From a span to its sending, ms; 2 s. */
  readonly delayMs?: number;
}

/** Of a burst of 300 jobs that end together there are some 9,000. */
const QUEUE = 20_000;
const BATCH = 512;
const DELAY_MS = 2_000;
/** Longer than the exporter takes: it is the one that tells how it went. */
const EXPORT_MS = 15_000;
const CLOSE_MS = 2_000;
/** Between two lines about spans that are lost. */
const SAID_EVERY_MS = 60_000;

/**
 * Sends spans to an OTLP receiver over HTTP, some at a time, tried again for up to ten seconds. What cannot be
 * delivered is dropped and counted in the log: a trace is worth nothing to the job. Disposing sends what
 * is left, for at most two seconds.
 */
export function openSpanSink(
  options: SpanSinkOptions,
  deps: { readonly clock: Clock; readonly logger: Logger },
): SpanSink & AsyncDisposable {
  const { clock } = deps;
  const resource = resourceFromAttributes(options.resource);
  const scope = { name: "gitea-dynamic-runner", version: options.version };
  const losses = countLosses(options.endpoint, deps);
  let queued = 0;
  const exporter = createOtlpExporter(options, {
    clock,
    // At the end everything that is left leaves at once.
    concurrency: Math.ceil(QUEUE / BATCH),
    outcomes: {
      done(count, error) {
        queued -= count;
        if (error !== null) losses.add(count, error);
      },
      rejected: losses.add,
      strange(detail) {
        const { endpoint } = options;
        deps.logger.warn("receiver of traces is doubtful", {
          component: "traces",
          endpoint,
          detail,
        });
      },
    },
  });
  const processor = new BatchSpanProcessor({
    exporter,
    maxQueueSize: QUEUE,
    maxExportBatchSize: BATCH,
    scheduledDelayMillis: options.delayMs ?? DELAY_MS,
    exportTimeoutMillis: EXPORT_MS,
  });
  return {
    record(span) {
      // The processor would drop it as well, and tell nobody.
      if (queued >= QUEUE) return losses.add(1, new Error("the receiver is too slow"));
      queued++;
      processor.onEnd(readable(span, { resource, scope }));
    },
    async [Symbol.asyncDispose]() {
      using limit = clock.timeout(CLOSE_MS);
      await abortable(processor.shutdown(), limit.signal).catch((error) => {
        if (queued > 0) losses.add(queued, error);
      });
      losses.close();
    },
  };
}

/** Counts spans that are lost, and says so at most once a minute, and at the end. */
function countLosses(
  endpoint: string,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
): { add(count: number, error: unknown): void; close(): void } {
  let dropped = 0;
  let said = 0;
  let saidAt = -Infinity;
  const say = (error: unknown) => {
    said = dropped;
    saidAt = clock.monotonic();
    logger.warn("spans are not delivered", { component: "traces", endpoint, dropped, error });
  };
  let last: unknown = null;
  return {
    add(count, error) {
      dropped += count;
      last = error;
      if (clock.monotonic() - saidAt >= SAID_EVERY_MS) say(error);
    },
    close() {
      if (dropped > said) say(last);
    },
  };
}

function readable(
  span: Span,
  made: {
    readonly resource: Resource;
    readonly scope: { readonly name: string; readonly version: string };
  },
): ReadableSpan {
  const { traceId, parentSpanId } = span;
  const context = { traceId, spanId: span.spanId, traceFlags: TraceFlags.SAMPLED };
  const parent = parentSpanId === null
    ? {}
    : { parentSpanContext: { ...context, spanId: parentSpanId } };
  return {
    name: span.name.toWellFormed(),
    kind: KINDS[span.kind],
    spanContext: () => context,
    ...parent,
    startTime: timeOf(span.startedAt),
    endTime: timeOf(span.endedAt),
    duration: timeOf(span.endedAt - span.startedAt),
    status: span.error === null
      ? { code: SpanStatusCode.UNSET }
      : { code: SpanStatusCode.ERROR, message: span.error.toWellFormed() },
    attributes: given(span.attributes),
    events: span.events.map(({ at, name, attributes }) => ({
      time: timeOf(at),
      name,
      attributes: given(attributes),
    })),
    links: [],
    ended: true,
    resource: made.resource,
    instrumentationScope: made.scope,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

const KINDS: Readonly<Record<Span["kind"], SpanKind>> = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
};

/** Seconds and nanoseconds. */
function timeOf(ms: number): HrTime {
  const seconds = Math.floor(ms / 1_000);
  return [seconds, Math.round((ms - seconds * 1_000) * 1_000_000)];
}

function given(attributes: Attributes): Record<string, string | number | boolean> {
  return Object.fromEntries(
    Object.entries(attributes).flatMap(([name, value]) => {
      if (value === null) return [];
      // Half a character, which JSON takes and receivers do not, would cost all the spans beside it.
      return [[name, typeof value === "string" ? value.toWellFormed() : value]];
    }),
  );
}
