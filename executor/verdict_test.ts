import assert from "node:assert/strict";
import { Result, TaskStateSchema } from "../proto/gen/runner/v1/messages_pb.ts";
import { create } from "../proto/runtime.ts";
import { type FinalFacts, judge } from "./verdict.ts";

const S = Result.SUCCESS;
const F = Result.FAILURE;
const C = Result.CANCELLED;

function facts(result: Result, steps: Result[], rest: Partial<FinalFacts>): FinalFacts {
  return {
    state: create(TaskStateSchema, {
      id: 1n,
      result,
      steps: steps.map((step) => ({ result: step })),
    }),
    lastRow: "Job succeeded",
    runnerVersion: "v1.0.8",
    cancelled: false,
    terminating: null,
    ...rest,
  };
}

// The rows are what runners 1.0.8 and 3.1.0 did in real jobs.
const cases: [string, FinalFacts, Result, boolean][] = [
  ["a true success", facts(S, [S, S], {}), S, false],
  ["a success with a failed and a skipped step", facts(S, [F, Result.SKIPPED, S], {}), S, false],
  ["an interrupted job", facts(S, [F, C, C], { lastRow: "context canceled" }), F, true],
  [
    "an interrupted job of 3.1.0",
    facts(S, [F, Result.SKIPPED], { lastRow: "context canceled", runnerVersion: "v3.1.0" }),
    F,
    true,
  ],
  ["a success with a cancelled step on 1.0.8", facts(S, [F, C], {}), F, true],
  ["the same on another version", facts(S, [F, C], { runnerVersion: "v3.3.0" }), S, false],
  ["a user's cancel", facts(S, [F, C], { lastRow: "context canceled", cancelled: true }), C, false],
  ["a failure", facts(F, [F], { lastRow: "context canceled" }), F, false],
  ["a row that only holds the words", facts(S, [S], { lastRow: "x context canceled" }), S, false],
];

for (const [name, given, result, hasRow] of cases) {
  Deno.test(`judge() says ${Result[result]} for ${name}`, () => {
    const verdict = judge(given);
    assert.equal(verdict.result, result);
    assert.equal(verdict.row !== null, hasRow);
  });
}
