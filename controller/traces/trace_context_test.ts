import assert from "node:assert/strict";
import type { AssignmentId } from "../model/ids.ts";
import { formatTraceparent, parseTraceparent, spanIdOf, traceOf } from "./trace_context.ts";

const ID = "gitea-task-7" as AssignmentId;

Deno.test("traceOf() gives every process the same trace, and another one to another task or runner", () => {
  const one = traceOf("uuid-1", ID);
  assert.deepEqual(traceOf("uuid-1", ID), one);
  assert.match(one.traceId, /^[0-9a-f]{32}$/);
  assert.match(one.spanId, /^[0-9a-f]{16}$/);
  assert.notEqual(traceOf("uuid-2", ID).traceId, one.traceId);
  assert.notEqual(traceOf("uuid-1", "gitea-task-8" as AssignmentId).traceId, one.traceId);
  // A release that names them otherwise would tear a trace apart that an earlier one has begun.
  assert.equal(
    formatTraceparent(one),
    "00-e27b31b158e5ea28a5ac59783f19c7db-592512c786638457-01",
  );
});

Deno.test("spanIdOf() is the same for the same name only", () => {
  const { traceId } = traceOf("uuid-1", ID);
  assert.equal(spanIdOf(traceId, "run", 1), spanIdOf(traceId, "run", 1));
  assert.notEqual(spanIdOf(traceId, "run", 1), spanIdOf(traceId, "run", 11));
  assert.notEqual(spanIdOf(traceId, "run1"), spanIdOf(traceId, "run", 1));
});

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";

for (
  const [text, known] of [
    [`00-${TRACE}-${SPAN}-01`, true],
    [`00-${TRACE}-${SPAN}-00`, true],
    [`cc-${TRACE}-${SPAN}-01-what-comes-later`, true],
    [`ff-${TRACE}-${SPAN}-01`, false],
    [`00-${TRACE.toUpperCase()}-${SPAN}-01`, false],
    [`00-${"0".repeat(32)}-${SPAN}-01`, false],
    [`00-${TRACE}-${"0".repeat(16)}-01`, false],
    [`00-${TRACE}-${SPAN}-01x`, false],
    [`00-${TRACE}-${SPAN}`, false],
    ["", false],
  ] as const
) {
  Deno.test(`parseTraceparent() ${known ? "reads" : "refuses"} "${text}"`, () => {
    assert.deepEqual(
      parseTraceparent(text),
      known ? { traceId: TRACE, spanId: SPAN } : undefined,
    );
  });
}
