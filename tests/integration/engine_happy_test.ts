import assert from "node:assert/strict";
import { Result } from "../../proto/gen/runner/v1/messages_pb.ts";
import { createWorld } from "../support/engine_world.ts";

const HAPPY = [
  "received",
  "capacity_acquired",
  "executor_absent",
  "executor_created",
  "identity_bound",
  "backend_ready",
  "runner_claimed",
  "acked",
  "running",
  "terminal",
  "marked",
  "cleaned",
];

Deno.test("engine tells exactly the events of a job that goes well", async () => {
  await using world = await createWorld();
  const { engine } = await world.start();
  await world.submit(1);
  await world.until("the end", () => engine.ledger.get(world.id(1))?.state.kind === "cleaned");
  assert.deepEqual(world.events(1), HAPPY);
  assert.equal(world.gitea.tasks.get(1n)?.result, Result.SUCCESS);
  assert.deepEqual(world.queue.stored(), []);
  assert.equal(world.store.tasks.size, 0);
  assert.equal(world.pod.executors.size, 0);
  assert.equal(engine.pools.pod.free(), 4);
  assert.deepEqual(world.errors, []);
});
