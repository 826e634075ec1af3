import assert from "node:assert/strict";
import { createWorld } from "../tests/support/engine_world.ts";

Deno.test("consider() asks with all steps as they are: a state without steps would take them away", async () => {
  await using world = await createWorld({ capacity: 1 });
  world.plan = () => ({ runMs: 86_400_000 });
  await world.start();
  await world.submit(1);
  await world.until("running", () => world.events(1).includes("running"));
  const task = world.gitea.tasks.get(1n);
  const reported = task?.state;
  assert.equal(reported?.steps.length, 2);
  await world.until("the question", () => task?.state !== reported, 1_500_000);
  const steps = (state = task?.state) => state?.steps.map(({ id, result }) => ({ id, result }));
  assert.deepEqual(steps(), steps(reported));
  assert.equal(task?.state?.result, 0);
});
