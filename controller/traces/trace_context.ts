import { createHash } from "node:crypto";
import type { AssignmentId } from "../model/ids.ts";

/** 32 hex digits, as W3C Trace Context writes it. */
export type TraceId = string & { readonly brand: "TraceId" };
/** 16 hex digits. */
export type SpanId = string & { readonly brand: "SpanId" };

/** Where a span belongs. */
export interface SpanContext {
  readonly traceId: TraceId;
  readonly spanId: SpanId;
}

const CONTEXT = "gdr/trace/v1";

/**
 * The trace of an assignment, and its root span. They are made from what every process that works on it
 * knows, so that a restart, another leader and its executor go on with the same trace and none of them
 * has to keep anything. `registration` is the uuid of the runner at Gitea: task ids are its Gitea's.
 */
export function traceOf(registration: string, id: AssignmentId): SpanContext {
  const hash = digest([CONTEXT, registration, id]);
  return { traceId: hash.slice(0, 32) as TraceId, spanId: hash.slice(32, 48) as SpanId };
}

/** The span of a name in a trace: one that is sent twice is the same span. */
export function spanIdOf(traceId: TraceId, ...name: readonly (string | number)[]): SpanId {
  return digest([traceId, ...name.map(String)]).slice(0, 16) as SpanId;
}

/** `traceparent` of W3C Trace Context, version 00, sampled. */
export function formatTraceparent({ traceId, spanId }: SpanContext): string {
  return `00-${traceId}-${spanId}-01`;
}

/** Reads a `traceparent` of any version; undefined for what is none, ids of zeros among them. */
export function parseTraceparent(text: string): SpanContext | undefined {
  const match = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(?:-|$)/.exec(text);
  const [, traceId = "", spanId = ""] = match ?? [];
  if (!/[1-9a-f]/.test(traceId) || !/[1-9a-f]/.test(spanId)) return undefined;
  return { traceId: traceId as TraceId, spanId: spanId as SpanId };
}

function digest(parts: readonly string[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}
