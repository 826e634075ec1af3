import assert from "node:assert/strict";
import { refuseMissingParts } from "./missing_parts.ts";

Deno.test("refuseMissingParts() takes what this version has", () => {
  refuseMissingParts({ executors: "process", leaderElection: "none" });
});

Deno.test("refuseMissingParts() names everything that is not there", () => {
  const asked = { executors: "real", leaderElection: "kubernetes" } as const;
  assert.throws(() => refuseMissingParts(asked), /EXECUTORS=real.*LEADER_ELECTION=kubernetes/);
  assert.throws(() => refuseMissingParts({ ...asked, executors: "process" }), /LEADER_ELECTION/);
  assert.throws(() => refuseMissingParts({ ...asked, leaderElection: "none" }), /EXECUTORS=real/);
});
