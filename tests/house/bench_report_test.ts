import assert from "node:assert/strict";
import { figure, formatReport, holds, percentile, type Row, spread } from "../../bench/report.ts";

const row: Row = {
  what: "hand-over",
  unit: "jobs/s",
  referenceName: "raw JetStream",
  reference: 400,
  ours: 240,
  bound: { kind: "at_least", value: 0.5, of: "ratio" },
  notes: ["window 16"],
};

Deno.test("holds() compares the ratio or our own figure", () => {
  assert.equal(holds(row), true);
  assert.equal(holds({ ...row, ours: 199 }), false);
  assert.equal(holds({ ...row, bound: { kind: "at_most", value: 200, of: "ours" } }), false);
  assert.equal(holds({ ...row, bound: { kind: "at_most", value: 240, of: "ours" } }), true);
  assert.equal(holds({ ...row, ours: NaN }), false);
});

Deno.test("formatReport() shows ratio, bound and verdict", () => {
  const report = formatReport([row, { ...row, ours: 1 }]);
  assert.match(
    report,
    /hand-over \| jobs\/s \| 400 \(raw JetStream\) \| 240 .*\| 0\.600 .*ratio >= 0\.5 \| kept/,
  );
  assert.match(report, /MISSED/);
  assert.match(report, /- hand-over: window 16\n/);
});

Deno.test("figure() keeps three digits, and zero as it is", () => {
  assert.deepEqual([1234.5, 12.34, 0.1234, 0, NaN].map(figure), [
    "1235",
    "12.3",
    "0.123",
    "0",
    "none",
  ]);
});

Deno.test("percentile() and spread() read sorted samples", () => {
  assert.equal(percentile([3, 1, 2], 0.5), 2);
  assert.equal(percentile([1], 0.9), 1);
  assert.ok(Number.isNaN(percentile([], 0.5)));
  assert.equal(spread([1, 2, 3]), "p50 2.00, p90 3.00, min 1.00, max 3.00 (n=3)");
});
