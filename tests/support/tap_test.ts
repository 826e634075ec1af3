import assert from "node:assert/strict";
import { readTap } from "./tap.ts";

Deno.test("readTap() tells what has passed, failed with its reason, and was skipped", () => {
  const { cases, planned } = readTap(`TAP version 14
# ./a_test.ts
ok 1 - one: (a | b)
ok 2 - two # SKIP
not ok 3 - three
  ---
  {"message":"Error: bad\\nthing","severity":"fail"}
  ...
# Subtest: four
    not ok 1 - inner
      ---
      {"message":"Error: x"}
      ...
    1..1
not ok 4 - four
1..4
`);
  assert.equal(planned, 4);
  assert.deepEqual(cases, [
    { name: "one: (a | b)", kind: "passed" },
    { name: "two", kind: "skipped" },
    { name: "three", kind: "failed", why: "Error: bad\nthing" },
    { name: "four", kind: "failed", why: "no reason is told" },
  ]);
});

Deno.test("readTap() knows of no plan when the run was cut off", () => {
  assert.deepEqual(readTap("TAP version 14\nok 1 - one\n"), {
    cases: [{ name: "one", kind: "passed" }],
    planned: null,
  });
});
