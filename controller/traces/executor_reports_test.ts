import assert from "node:assert/strict";
import type { AssignmentId } from "../model/ids.ts";
import { createReportCollector } from "./executor_reports.ts";
import { formatTraceparent, type SpanId, traceOf } from "./trace_context.ts";

const trace = traceOf("uuid-1", "gitea-task-7" as AssignmentId);
const own = "00f067aa0ba902b7" as SpanId;
const bounds = { now: 10_000, earliest: 4_000 };

function call(method: string, code = "ok", parent: string | null = null) {
  return { method, code, parent, startedAt: 1, endedAt: 2 };
}

Deno.test("report() counts every call and keeps the first and last that say something", () => {
  const reports = createReportCollector(trace);
  for (let i = 0; i < 100; i++) {
    reports.called(call("UpdateLog"));
    reports.called(call("heartbeat", "204"));
    reports.called({ ...call("UpdateTask"), startedAt: i });
  }
  reports.called(call("UpdateLog", "unavailable"));
  const { calls, counts } = reports.report();
  assert.deepEqual([...counts], [["UpdateLog", 101], ["heartbeat", 100], ["UpdateTask", 100]]);
  assert.equal(calls.length, 32);
  assert.equal(calls[0]?.startedAt, 0);
  assert.equal(calls.at(-1)?.method, "UpdateLog");
});

Deno.test("report() has the gate's span only when it is one of this trace", () => {
  const reports = createReportCollector(trace);
  reports.called(call("FetchTask", "ok", formatTraceparent({ ...trace, spanId: own })));
  assert.equal(reports.report().spanId, own);
  const other = traceOf("uuid-1", "gitea-task-8" as AssignmentId);
  const foreign = createReportCollector(trace);
  for (const parent of [null, "", "no traceparent", formatTraceparent({ ...other, spanId: own })]) {
    foreign.called(call("FetchTask", "ok", parent));
  }
  assert.equal(foreign.report().spanId, null);
});

Deno.test("report() places the gate by our clock, whatever it says", () => {
  const reports = createReportCollector(trace);
  reports.exited({ code: 0, phases: { svid: 100, task: 2_000, ended: 3_000 } }, bounds);
  const { gate } = reports.report();
  assert.deepEqual([gate?.startedAt, gate?.endedAt], [7_000, 10_000]);
  assert.deepEqual([...gate?.phases ?? []], [["svid", 100], ["task", 2_000], ["ended", 3_000]]);
});

Deno.test("report() lets no gate have lived before its assignment", () => {
  const reports = createReportCollector(trace);
  reports.exited({ code: 4, phases: { svid: 7_000, ended: 9e15 } }, bounds);
  const { gate } = reports.report();
  assert.equal(gate?.startedAt, 4_000);
  assert.deepEqual([...gate?.phases ?? []], []);
});
