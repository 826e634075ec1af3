import type { HrTime } from "@opentelemetry/api";
import { SpanKind, SpanStatusCode, TraceFlags } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { type Resource, resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor, type ReadableSpan, type SpanExporter } from "@opentelemetry/sdk-trace";
import type { Attributes, Span, SpanSink } from "../../controller/traces/span.ts";
import { abortable } from "../../lib/abortable.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/logger.ts";

/** Where spans go. */
export interface SpanSinkOptions {
  /** Base URL of an OTLP receiver; `/v1/traces` is added. */
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  /** PEM; null = the system's authorities. */
  readonly ca: string | null;
  readonly service: { readonly name: string; readonly version: string; readonly instance: string };
  /** From a span to its sending, ms; 2 s. */
  readonly delayMs?: number;
}

/** Of a burst of 300 jobs that end together there are some 9,000. */
const QUEUE = 20_000;
const BATCH = 512;
const DELAY_MS = 2_000;
const SEND_MS = 10_000;
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
  const { name, version, instance } = options.service;
  const resource = resourceFromAttributes({
    "service.name": name,
    "service.version": version,
    "service.instance.id": instance,
  });
  const scope = { name: "gitea-dynamic-runner", version };
  const lost = countLosses(options.endpoint, deps);
  let queued = 0;
  const exporter = observed(
    new OTLPTraceExporter({
      url: `${options.endpoint}/v1/traces`,
      headers: { ...options.headers },
      timeoutMillis: SEND_MS,
      // At the end everything that is left leaves at once.
      concurrencyLimit: Math.ceil(QUEUE / BATCH),
      ...options.ca === null ? {} : { httpAgentOptions: { ca: options.ca } },
    }),
    (count, error) => {
      queued -= count;
      if (error !== null) lost(count, error);
    },
  );
  const processor = new BatchSpanProcessor({
    exporter,
    maxQueueSize: QUEUE,
    maxExportBatchSize: BATCH,
    scheduledDelayMillis: options.delayMs ?? DELAY_MS,
    exportTimeoutMillis: SEND_MS + 1_000,
  });
  return {
    record(span) {
      // The processor would drop it as well, and tell nobody.
      if (queued >= QUEUE) return lost(1, new Error("the receiver is too slow"));
      queued++;
      processor.onEnd(readable(span, { resource, scope }));
    },
    async [Symbol.asyncDispose]() {
      using limit = clock.timeout(CLOSE_MS);
      await abortable(processor.shutdown(), limit.signal).catch((error) => {
        if (queued > 0) lost(queued, error);
      });
    },
  };
}

/** An exporter whose outcomes are told; the processor itself hears of successes only. */
function observed(
  inner: SpanExporter,
  told: (count: number, error: Error | null) => void,
): SpanExporter {
  return {
    export(spans, done) {
      inner.export(spans, ({ code, error }) => {
        told(spans.length, code === SUCCESS ? null : error ?? new Error("not delivered"));
        done({ code: SUCCESS });
      });
    },
    shutdown: () => inner.shutdown(),
    forceFlush: () => inner.forceFlush?.() ?? Promise.resolve(),
  };
}

/** `ExportResultCode.SUCCESS` of `@opentelemetry/core`. */
const SUCCESS = 0;

function countLosses(
  endpoint: string,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
): (count: number, error: unknown) => void {
  let dropped = 0;
  let saidAt = -Infinity;
  return (count, error) => {
    dropped += count;
    const now = clock.monotonic();
    if (now - saidAt < SAID_EVERY_MS) return;
    saidAt = now;
    logger.warn("spans are not delivered", { component: "traces", endpoint, dropped, error });
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
    name: span.name,
    kind: KINDS[span.kind],
    spanContext: () => context,
    ...parent,
    startTime: timeOf(span.startedAt),
    endTime: timeOf(span.endedAt),
    duration: timeOf(span.endedAt - span.startedAt),
    status: span.error === null
      ? { code: SpanStatusCode.UNSET }
      : { code: SpanStatusCode.ERROR, message: span.error },
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
    Object.entries(attributes).flatMap(([name, value]) => value === null ? [] : [[name, value]]),
  );
}
