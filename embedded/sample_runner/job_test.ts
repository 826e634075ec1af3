import assert from "node:assert/strict";
import { readOutputs } from "./file_commands.ts";
import { readJob } from "./job.ts";
import { createMasks } from "./masks.ts";

const WORKFLOW = `
name: x
on: push
env: { A: workflow, B: 1 }
defaults: { run: { shell: sh } }
jobs:
  build:
    runs-on: self-hosted
    timeout-minutes: "5"
    env: { A: job }
    strategy: { matrix: { suite: [unit] } }
    outputs: { v: "\${{ steps.s.outputs.v }}" }
    steps:
    - run: |
        echo one
        echo two
    - { id: s, name: Named, run: "true", if: always(), continue-on-error: true, timeout-minutes: 0.5 }
    - uses: actions/checkout@v4
`;

Deno.test("readJob() reads steps with the workflow's and the job's defaults", () => {
  const job = readJob(new TextEncoder().encode(WORKFLOW), "build");
  assert.deepEqual(job.env, { A: "job", B: "1" });
  assert.deepEqual(job.matrix, { suite: "unit" });
  assert.equal(job.timeoutMs, 300_000);
  assert.deepEqual(job.steps.map((step) => step.name), [
    "Run echo one",
    "Named",
    "Run actions/checkout@v4",
  ]);
  assert.equal(job.steps[0]?.shell, "sh");
  assert.equal(job.steps[1]?.condition, "always()");
  assert.equal(job.steps[1]?.continueOnError, true);
  assert.equal(job.steps[1]?.timeoutMs, 30_000);
});

Deno.test("readJob() refuses a job that is not there", () => {
  assert.throws(() => readJob(new TextEncoder().encode(WORKFLOW), "deploy"), /no steps/);
});

Deno.test("readOutputs() reads lines and blocks", () => {
  const text = "a=1\nb<<END\nline one\n\nline=two\nEND\nc=x=y\nnoise\n";
  assert.deepEqual(readOutputs(text), { a: "1", b: "line one\n\nline=two", c: "x=y" });
});

Deno.test("createMasks() hides values, each line of long ones, and what is added later", () => {
  const masks = createMasks(["secret", "secret-long", "first line\nsecond line", ""]);
  assert.equal(masks.apply("a secret-long and secret"), "a *** and ***");
  assert.equal(masks.apply("the second line"), "the ***");
  masks.add("later");
  assert.equal(masks.apply("sooner or later"), "sooner or ***");
});
