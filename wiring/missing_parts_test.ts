import assert from "node:assert/strict";
import { missingParts } from "./missing_parts.ts";

const variablesOf = (asked: Parameters<typeof missingParts>[0]) =>
  missingParts(asked).map(({ variable }) => variable);

Deno.test("missingParts() takes what this version has", () => {
  assert.deepEqual(variablesOf({ executors: "process", leaderElection: "none" }), []);
});

Deno.test("missingParts() names everything that is not there", () => {
  const asked = { executors: "real", leaderElection: "kubernetes" } as const;
  assert.deepEqual(variablesOf(asked), ["EXECUTORS", "LEADER_ELECTION"]);
  assert.deepEqual(variablesOf({ ...asked, executors: "process" }), ["LEADER_ELECTION"]);
  assert.deepEqual(variablesOf({ ...asked, leaderElection: "none" }), ["EXECUTORS"]);
});
