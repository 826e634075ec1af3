import assert from "node:assert/strict";
import { Result } from "../proto/gen/runner/v1/messages_pb.ts";
import { type FinalFacts, judge } from "./verdict.ts";

const SUCCESS: FinalFacts = {
  result: Result.SUCCESS,
  lastRow: "Job succeeded",
  terminating: null,
  cancelled: false,
};

Deno.test("judge() believes everything but the success of an interrupted job", () => {
  const cases: [string, Partial<FinalFacts>, Result][] = [
    ["plain success", {}, Result.SUCCESS],
    ["rows not seen", { lastRow: null }, Result.SUCCESS],
    ["a step that prints it inside", { lastRow: "err: context canceled" }, Result.SUCCESS],
    ["stopped", { lastRow: "context canceled" }, Result.FAILURE],
    ["stopped by the user", { lastRow: "context canceled", cancelled: true }, Result.CANCELLED],
    ["terminating", { lastRow: "half of it", terminating: "evicted" }, Result.FAILURE],
    ["terminating, rows not seen", { lastRow: null, terminating: "evicted" }, Result.FAILURE],
    [
      "terminating, yet finished",
      { lastRow: "🏁  Job succeeded", terminating: "evicted" },
      Result.SUCCESS,
    ],
    ["failure", { result: Result.FAILURE, lastRow: "context canceled" }, Result.FAILURE],
    ["cancelled", { result: Result.CANCELLED, terminating: "evicted" }, Result.CANCELLED],
  ];
  for (const [name, facts, expected] of cases) {
    const verdict = judge({ ...SUCCESS, ...facts });
    assert.equal(verdict.result, expected, name);
    const changed = expected === Result.FAILURE && facts.result === undefined;
    assert.equal(verdict.row !== null, changed, name);
  }
});

Deno.test("judge() keeps the gate's words on one line of the log", () => {
  const { row } = judge({
    ...SUCCESS,
    lastRow: "x",
    terminating: `a\n::set-output::\u001b[0m${"y".repeat(999)}`,
  });
  assert.ok(
    row !== null && !row.includes("\n") && !row.includes("\u001b") && row.length < 450,
    row ?? "",
  );
});
