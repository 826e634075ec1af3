import assert from "node:assert/strict";
import { BackendError } from "../../controller/backend.ts";
import { createWorld } from "../support/engine_world.ts";

Deno.test("engine notices by a list who is gone, though one before it cannot be looked at", async () => {
  await using world = await createWorld();
  world.plan = () => ({ runMs: 600_000 });
  await world.start();
  for (const task of [1, 2]) await world.submit(task);
  await world.until("both", () => [1, 2].every((task) => world.events(task).includes("running")));
  world.pod.faults.muteWatch = true;
  const sick = world.executor(1);
  world.pod.faults.before = (method, name) =>
    method === "find" && name === sick
      ? Promise.reject(new BackendError("unavailable", "Find executor: the test wants it"))
      : Promise.resolve();
  for (const task of [1, 2]) world.pod.vanish(world.executor(task));
  await world.until("the loss of the second", () => world.events(2).includes("lost"), 120_000);
  assert.ok(!world.events(1).includes("lost"));
  world.pod.faults.before = null;
  await world.until("the loss of the first", () => world.events(1).includes("lost"), 120_000);
});

Deno.test("engine says of a stored job that the backend cannot be listed, and that it waits its turn once it can", async () => {
  await using world = await createWorld({ capacity: 0 });
  world.pod.faults.failing.set("list", "unavailable");
  const { engine } = await world.start();
  await world.submit(1);
  const reason = () => engine.ledger.get(world.id(1))?.reason;
  assert.equal(reason()?.code, "backend_unavailable");
  world.pod.faults.failing.clear();
  await world.until("recovered", () => engine.ready());
  assert.equal(reason()?.code, "awaiting_slot");
});
