import assert from "node:assert/strict";
import { optionsText, PART_OPTIONS, suiteOptions } from "./suite_parts.ts";

Deno.test("suiteOptions() reads what there is, and its defaults", () => {
  const options = { ...PART_OPTIONS, jobs: { type: "string", default: "300" } } as const;
  const values = suiteOptions(options, ["--only=a,b", "--list"]);
  assert.deepEqual({ ...values }, { only: "a,b", list: true, jobs: "300" });
});

Deno.test("optionsText() names every option with its default", () => {
  const options = { ...PART_OPTIONS, jobs: { type: "string", default: "300" } } as const;
  assert.equal(optionsText(options), "Options: --only=..., --list, --jobs=300");
});
