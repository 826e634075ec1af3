import assert from "node:assert/strict";
import { HAPPY } from "../../tests/support/engine_events.ts";
import { createPhaseStatistics, phasesOf } from "./phases.ts";

Deno.test("phasesOf() cuts a whole journey into phases when every event is there", () => {
  const journal = HAPPY.map((event, i) => ({ event, at: 100 + i * 10 }));
  const spans = phasesOf(journal, 50);
  assert.deepEqual(
    spans.map((s) => [s.name, (s.endedAt ?? 0) - s.startedAt]),
    [
      ["queued", 50],
      ["admission", 10],
      ["create", 20],
      ["identity", 10],
      ["start", 20],
      ["hand_over", 20],
      ["run", 10],
      ["clean_up", 20],
    ],
  );
});

Deno.test("phasesOf() leaves the current phase open when the job still runs", () => {
  const spans = phasesOf([{ event: "received", at: 5 }], 1);
  assert.deepEqual(spans, [
    { name: "queued", startedAt: 1, endedAt: 5 },
    { name: "admission", startedAt: 5, endedAt: null },
  ]);
});

Deno.test("phasesOf() closes what never came when the assignment is cleaned", () => {
  const spans = phasesOf(
    [{ event: "received", at: 5 }, { event: "terminal", at: 7 }, { event: "cleaned", at: 9 }],
    1,
  );
  assert.equal(spans.every((s) => s.endedAt !== null), true);
});

Deno.test("of() gives p50 and p95 of what was added, null when nothing was", () => {
  const statistics = createPhaseStatistics();
  assert.deepEqual(statistics.of("pod", "start"), { p50: null, p95: null });
  for (let i = 1; i <= 100; i++) statistics.add("pod", "start", i);
  assert.deepEqual(statistics.of("pod", "start"), { p50: 51, p95: 96 });
});

Deno.test("of() forgets the oldest when more than `keep` were added", () => {
  const statistics = createPhaseStatistics(3);
  for (const ms of [1_000, 1, 2, 3]) statistics.add("vm", "run", ms);
  assert.deepEqual(statistics.of("vm", "run"), { p50: 2, p95: 3 });
});
