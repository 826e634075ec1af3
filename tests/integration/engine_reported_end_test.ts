import assert from "node:assert/strict";
import { GiteaError } from "../../controller/gitea.ts";
import type { Result as Ended } from "../../controller/model/reason.ts";
import { Result } from "../../proto/gen/runner/v1/messages_pb.ts";
import { createWorld, type World } from "../support/engine_world.ts";

/** The controller dies as Gitea is told the end, and the executor with it. */
async function loseBoth(world: World, result: Ended, sealed: boolean): Promise<void> {
  world.plan = () => ({ fate: "dies_reporting", result });
  const first = await world.start();
  const { updateTask } = world.gitea;
  world.gitea.updateTask = (update, call) => {
    if (update.state.result === Result.UNSPECIFIED) return updateTask(update, call);
    const task = world.gitea.tasks.get(1n);
    if (task !== undefined) task.sealed = sealed;
    first.kill();
    return Promise.reject(new GiteaError("unavailable", "Update the task: the controller died"));
  };
  await world.submit(1);
  await world.until("the controller's death", () => first.dead);
  world.gitea.updateTask = updateTask;
  await world.start();
  await world.cleaned(1, 120_000);
}

for (
  const [result, stored] of [["success", Result.SUCCESS], ["failure", Result.FAILURE]] as const
) {
  Deno.test(`engine reports the ${result} of an executor that was lost together with the controller`, async () => {
    await using world = await createWorld({ capacity: 1 });
    await loseBoth(world, result, true);
    const task = world.gitea.tasks.get(1n);
    assert.equal(task?.result, stored);
    assert.deepEqual(task.state?.steps.map((step) => step.result), [stored, stored]);
    assert.ok(
      task.rows.every((row) => !row.includes("gitea-dynamic-runner")),
      task.rows.join("\n"),
    );
    world.assertClean();
  });
}

Deno.test("engine says in a log that was not sealed yet that its last row may be missing", async () => {
  await using world = await createWorld({ capacity: 1 });
  await loseBoth(world, "success", false);
  const task = world.gitea.tasks.get(1n);
  assert.equal(task?.result, Result.SUCCESS);
  assert.match(task.rows.at(-1) ?? "", /reported success .* may be missing/);
  assert.ok(task.sealed);
  world.assertClean();
});
