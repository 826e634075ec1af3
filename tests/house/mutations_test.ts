import assert from "node:assert/strict";
import { MUTATIONS } from "../faults/mutations.ts";
import { POD_MUTATIONS } from "../kubernetes/mutations.ts";

const ROOT = new URL("../../", import.meta.url);

Deno.test("each bug that the long suites plant has one place, and a test that is there", () => {
  for (const { name, file, before, test } of [...MUTATIONS, ...POD_MUTATIONS]) {
    const text = Deno.readTextFileSync(new URL(file, ROOT));
    assert.equal(text.split(before).length - 1, 1, `${name}: ${before}`);
    assert.ok(Deno.statSync(new URL(test.file, ROOT)).isFile, `${name}: ${test.file}`);
  }
});
