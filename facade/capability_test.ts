import assert from "node:assert/strict";
import { Secret } from "../lib/secret.ts";
import { createCapabilities } from "./capability.ts";

const OLD = new Secret("o".repeat(32));
const NEW = new Secret("n".repeat(40));

Deno.test("issue() is deterministic and verify() takes it for its own assignment only", () => {
  const capabilities = createCapabilities([NEW]);
  const issued = capabilities.issue("gitea-task-1");
  assert.equal(createCapabilities([NEW]).issue("gitea-task-1"), issued);
  assert.match(issued, /^[A-Za-z0-9_-]{43}$/);
  assert.ok(capabilities.verify("gitea-task-1", issued));
  assert.ok(!capabilities.verify("gitea-task-2", issued));
  for (const wrong of ["", "x", issued + "A", issued.slice(1), issued.toUpperCase()]) {
    assert.ok(!capabilities.verify("gitea-task-1", wrong), wrong);
  }
});

Deno.test("verify() takes what any current key issued when keys are rotated", () => {
  const before = createCapabilities([OLD]).issue("gitea-task-1");
  const rotated = createCapabilities([NEW, OLD]);
  assert.ok(rotated.verify("gitea-task-1", before));
  assert.notEqual(rotated.issue("gitea-task-1"), before);
  assert.ok(!createCapabilities([NEW]).verify("gitea-task-1", before));
});

Deno.test("createCapabilities() refuses short keys and none, without showing them", () => {
  assert.throws(() => createCapabilities([]), /set CAPABILITY_KEY/);
  assert.throws(
    () => createCapabilities([new Secret("tiny-secret")]),
    (error) => error instanceof RangeError && !error.message.includes("tiny-secret"),
  );
});
