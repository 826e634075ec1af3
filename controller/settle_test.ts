import assert from "node:assert/strict";
import { createFakeClock } from "../lib/fake_clock.ts";
import { Result } from "../proto/gen/runner/v1/messages_pb.ts";
import { add, createFakeGitea } from "../tests/fakes/gitea_port.ts";
import { GiteaError } from "./gitea.ts";
import { parseTaskId, type TaskId } from "./model/ids.ts";
import type { StepSnapshot } from "./model/record.ts";
import { fromWireResult, settleTask, toWireResult } from "./settle.ts";

const signal = new AbortController().signal;
const taskId = parseTaskId("7") as TaskId;
const step = (id: number, more: Partial<StepSnapshot> = {}): StepSnapshot => ({
  id,
  result: null,
  startedAt: 0,
  stoppedAt: 0,
  logIndex: 0,
  logLength: 0,
  ...more,
});

function setup() {
  const gitea = createFakeGitea();
  const task = add();
  gitea.tasks.set(7n, task);
  return { gitea, task, clock: createFakeClock() };
}

Deno.test("settleTask() adds its rows after those that are there, seals the log, then ends the task", async () => {
  const { gitea, task, clock } = setup();
  task.rows.push("waiting: position 1");
  const settlement = {
    taskId,
    result: "failure",
    text: "lost: node gone\nsee events",
    steps: [],
  } as const;
  assert.equal(await settleTask(settlement, { gitea, clock }, signal), "failure");
  assert.deepEqual(task.rows, ["waiting: position 1", "lost: node gone", "see events"]);
  assert.equal(task.sealed, true);
  assert.equal(task.result, Result.FAILURE);
});

Deno.test("settleTask() keeps finished steps and closes the others as cancelled", async () => {
  const { gitea, task, clock } = setup();
  const steps = [
    step(0, { result: "success", startedAt: 1_000, stoppedAt: 2_000, logIndex: 3, logLength: 4 }),
    step(1, { startedAt: 2_000 }),
    step(2),
  ];
  await settleTask({ taskId, result: "failure", text: "lost", steps }, { gitea, clock }, signal);
  assert.deepEqual(
    task.state?.steps.map((s) => [s.id, s.result, s.logIndex, s.logLength]),
    [[0n, Result.SUCCESS, 3n, 4n], [1n, Result.CANCELLED, 0n, 0n], [2n, Result.CANCELLED, 0n, 0n]],
  );
  assert.equal(task.state?.steps[0]?.stoppedAt?.seconds, 2n);
  assert.ok(task.state?.steps[1]?.stoppedAt);
});

Deno.test("settleTask() resolves to Gitea's own result when the task had ended before", async () => {
  const { gitea, task, clock } = setup();
  task.result = Result.SUCCESS;
  task.sealed = true;
  const settlement = { taskId, result: "failure", text: "lost", steps: [] } as const;
  assert.equal(await settleTask(settlement, { gitea, clock }, signal), "success");
  assert.deepEqual(task.rows, []);
});

Deno.test("settleTask() resolves to null when Gitea does not know the task", async () => {
  const { gitea, clock } = setup();
  gitea.tasks.clear();
  const settlement = { taskId, result: "cancelled", text: "x", steps: [] } as const;
  assert.equal(await settleTask(settlement, { gitea, clock }, signal), null);
});

Deno.test("settleTask() rejects when Gitea does not answer, so that it is tried again", async () => {
  const { gitea, clock } = setup();
  gitea.down = new GiteaError("unavailable", "Update the log: connection refused");
  const settlement = { taskId, result: "failure", text: "x", steps: [] } as const;
  await assert.rejects(settleTask(settlement, { gitea, clock }, signal), /connection refused/);
});

Deno.test("toWireResult() and fromWireResult() are inverse", () => {
  for (const result of ["success", "failure", "cancelled", "skipped", null] as const) {
    assert.equal(fromWireResult(toWireResult(result)), result);
  }
});
