import type { SpanId, TraceId } from "./trace_context.ts";

/** What a span says beside its name and times; a value of null is left out. */
export type Attributes = Readonly<Record<string, string | number | boolean | null>>;

/** A finished span. Holds no payload, credential, SPIFFE ID or environment. */
export interface Span {
  readonly traceId: TraceId;
  readonly spanId: SpanId;
  /** Null: the root. */
  readonly parentSpanId: SpanId | null;
  readonly name: string;
  readonly kind: "internal" | "server" | "producer" | "consumer";
  /** Milliseconds since the epoch; the end is not before the start. */
  readonly startedAt: number;
  readonly endedAt: number;
  readonly attributes: Attributes;
  readonly events: readonly SpanEvent[];
  /** Why it failed, in words; null when it did not. */
  readonly error: string | null;
}

/** What a child says of itself; the rest it has from its trace. */
export type ChildSpan = Pick<Span, "name" | "startedAt" | "endedAt"> & Partial<Span>;

/** Something that happened at one moment of a span. */
export interface SpanEvent {
  readonly at: number;
  readonly name: string;
  readonly attributes: Attributes;
}

/** Where finished spans go. Never throws and never blocks: a full sink drops spans and says so. */
export interface SpanSink {
  record(span: Span): void;
}
