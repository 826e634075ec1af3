import assert from "node:assert/strict";
import { HAPPY } from "../../tests/support/engine_events.ts";
import { journalOf } from "../../tests/support/journal.ts";
import { infoOf } from "../../tests/support/ledger_world.ts";
import type { JournalEntry } from "../journal.ts";
import { type AssignmentFacts, assignmentSpans } from "./assignment_spans.ts";
import type { Span } from "./span.ts";
import { traceOf } from "./trace_context.ts";

const info = infoOf(7);
const trace = traceOf("uuid-1", info.id);

function spans(over: Partial<AssignmentFacts> = {}): Span[] {
  return assignmentSpans(trace, {
    info,
    fetchedAt: 900,
    storedAt: 950,
    result: "success",
    reason: null,
    journal: journalOf(HAPPY as JournalEntry["event"][]),
    moments: new Map(),
    steps: [],
    executor: null,
    report: { gate: null, spanId: null, calls: [], counts: new Map() },
    ...over,
  });
}

const step = { id: 0, result: "success", startedAt: 1_080, stoppedAt: 1_085 } as const;
const rows = { logIndex: 0, logLength: 0 };

Deno.test("assignmentSpans() are one tree from the hand-out to the clean-up", () => {
  const all = spans();
  const [root] = all;
  assert.equal(root?.parentSpanId, null);
  assert.deepEqual([root?.startedAt, root?.endedAt], [900, 1_000 + (HAPPY.length - 1) * 10]);
  assert.deepEqual(all.map(({ name }) => name), [
    "assignment",
    "store",
    "queued",
    "admission",
    "create",
    "identity",
    "start",
    "hand_over",
    "run",
    "clean_up",
  ]);
  assert.equal(new Set(all.map(({ spanId }) => spanId)).size, all.length);
  for (const span of all.slice(1)) assert.equal(span.parentSpanId, trace.spanId, span.name);
  assert.deepEqual(root?.events.map(({ name }) => name), HAPPY);
  assert.equal(root?.attributes["cicd.pipeline.task.run.result"], "success");
  assert.equal(root?.error, null);
});

Deno.test("assignmentSpans() names the same spans again when it is asked again", () => {
  assert.deepEqual(spans().map(({ spanId }) => spanId), spans().map(({ spanId }) => spanId));
});

Deno.test("assignmentSpans() begins with the store where an earlier process has fetched", () => {
  const [root, next] = spans({ fetchedAt: null });
  assert.equal(root?.startedAt, 950);
  assert.equal(next?.name, "queued");
});

Deno.test("assignmentSpans() puts finished steps below the runner's work, and leaves the others out", () => {
  const all = spans({
    report: {
      gate: {
        startedAt: 1_000,
        endedAt: 1_100,
        code: 0,
        phases: new Map([["task", 20], ["runner_ended", 90]]),
      },
      spanId: null,
      calls: [],
      counts: new Map(),
    },
    steps: [
      { ...step, ...rows },
      { ...step, ...rows, id: 1, result: "failure", stoppedAt: 1_070 },
      { ...step, ...rows, id: 2, result: null, stoppedAt: 0 },
    ],
  });
  const works = all.find(({ name }) => name === "runner works");
  const steps = all.filter(({ name }) => name.startsWith("step"));
  assert.deepEqual(steps.map((s) => [s.name, s.parentSpanId, s.error !== null]), [
    ["step 0", works?.spanId, false],
    ["step 1", works?.spanId, true],
  ]);
  // A step's clock is its executor's: it may run backwards.
  for (const { startedAt, endedAt } of all) assert.ok(endedAt >= startedAt);
});

Deno.test("assignmentSpans() ends open phases with the assignment, and says why it failed", () => {
  const all = spans({
    journal: journalOf(["received", "capacity_acquired", "terminal", "cleaned"]),
    result: "failure",
    reason: { code: "max_wait", detail: "it has waited for 2 h" },
  });
  assert.equal(all[0]?.error, "max_wait: it has waited for 2 h");
  for (const span of all) assert.ok(span.endedAt <= 1_030, span.name);
});

Deno.test("assignmentSpans() keeps the first and last of a thousand events", () => {
  const journal = [
    ...journalOf(["received"]),
    ...journalOf(Array.from({ length: 1_000 }, () => "backend_pending")),
    ...journalOf(["cleaned"], 50_000),
  ];
  const [root] = spans({ journal });
  assert.equal(root?.events.length, 64);
  assert.equal(root?.events.at(-1)?.name, "cleaned");
  assert.equal(root?.events[0]?.name, "received");
});

Deno.test("assignmentSpans() hangs calls and parts below the gate when that has told of itself", () => {
  const call = { method: "FetchTask", code: "ok", startedAt: 1_050, endedAt: 1_052 };
  const report: AssignmentFacts["report"] = {
    gate: {
      startedAt: 1_000,
      endedAt: 1_100,
      code: 0,
      phases: new Map([["svid", 10], ["facade", 12], ["prepared", 15], ["declare", 20]]),
    },
    spanId: "00f067aa0ba902b7" as Span["spanId"],
    calls: [call, { ...call, code: "unavailable" }],
    counts: new Map([["FetchTask", 2], ["UpdateLog", 40]]),
  };
  const all = spans({ report });
  const gate = all.find(({ name }) => name === "executor");
  assert.equal(gate?.spanId, report.spanId);
  assert.equal(gate?.attributes["gdr.facade.calls.UpdateLog"], 40);
  const below = all.filter(({ parentSpanId }) => parentSpanId === report.spanId);
  assert.deepEqual(below.map((s) => [s.name, s.startedAt, s.endedAt, s.error]), [
    ["gate svid", 1_000, 1_010, null],
    ["gate meets facade", 1_010, 1_012, null],
    ["gate prepares runner", 1_000, 1_015, null],
    ["runner starts", 1_015, 1_020, null],
    ["facade FetchTask", 1_050, 1_052, null],
    ["facade FetchTask", 1_050, 1_052, "answered unavailable"],
  ]);
  assert.equal(new Set(all.map(({ spanId }) => spanId)).size, all.length);
});

Deno.test("assignmentSpans() hangs calls below the root when the gate was lost", () => {
  const report = {
    gate: null,
    spanId: "00f067aa0ba902b7" as Span["spanId"],
    calls: [{ method: "FetchTask", code: "ok", startedAt: 1_050, endedAt: 1_052 }],
    counts: new Map(),
  };
  const call = spans({ report }).find(({ kind }) => kind === "server");
  assert.equal(call?.parentSpanId, trace.spanId);
  const [first] = spans({ report, steps: [{ ...step, ...rows }] }).filter(({ name }) =>
    name === "step 0"
  );
  assert.equal(first?.parentSpanId, trace.spanId);
});

Deno.test("assignmentSpans() stay one tree when a gate names a span that is there already", () => {
  const gate = { startedAt: 1_000, endedAt: 1_100, code: 0, phases: new Map() };
  const queued = spans().find(({ name }) => name === "queued");
  for (const spanId of [trace.spanId, queued?.spanId ?? null]) {
    const all = spans({ report: { gate, spanId, calls: [], counts: new Map() } });
    assert.equal(new Set(all.map((span) => span.spanId)).size, all.length);
    assert.equal(all.find(({ name }) => name === "executor")?.parentSpanId, trace.spanId);
  }
});

Deno.test("assignmentSpans() leave out steps whose numbers no receiver could read, and tell one once", () => {
  const day = 24 * 3_600_000;
  const end = 1_000 + (HAPPY.length - 1) * 10;
  const all = spans({
    steps: [
      { ...step, ...rows },
      { ...step, ...rows },
      { ...step, ...rows, id: 9.2e18 },
      { ...step, ...rows, id: 2, startedAt: 2.5e14, stoppedAt: 2.5e14 },
      { ...step, ...rows, id: 3, stoppedAt: end + day + 1 },
      { ...step, ...rows, id: 4, stoppedAt: end + day },
    ],
  });
  const steps = all.filter(({ name }) => name.startsWith("step"));
  assert.deepEqual(steps.map(({ name }) => name), ["step 0", "step 4"]);
  assert.equal(new Set(all.map(({ spanId }) => spanId)).size, all.length);
});

Deno.test("assignmentSpans() have a thousand steps at most", () => {
  const many = Array.from({ length: 5_000 }, (_, id) => ({ ...step, ...rows, id }));
  const steps = spans({ steps: many }).filter(({ name }) => name.startsWith("step"));
  assert.equal(steps.length, 1_000);
});
