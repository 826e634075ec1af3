import assert from "node:assert/strict";
import { TaskSchema } from "../../proto/gen/runner/v1/messages_pb.ts";
import { create } from "../../proto/runtime.ts";
import { stepsOf } from "./steps.ts";

const task = (yaml: string, job = "build") =>
  create(TaskSchema, {
    id: 1n,
    workflowPayload: new TextEncoder().encode(yaml),
    context: { job },
  });

Deno.test("stepsOf() counts the steps of the task's job", () => {
  assert.equal(stepsOf(task("jobs:\n  build:\n    steps: [{run: a}, {run: b}]\n")), 2);
});

Deno.test("stepsOf() is 0 when there is no such job, no list, or no YAML", () => {
  assert.equal(stepsOf(task("jobs: {build: {steps: [{run: a}]}}", "deploy")), 0);
  assert.equal(stepsOf(task("jobs: {build: {steps: text}}")), 0);
  assert.equal(stepsOf(task("jobs: [")), 0);
  assert.equal(stepsOf(create(TaskSchema, { id: 1n })), 0);
});
