import assert from "node:assert/strict";
import { Result } from "../../proto/gen/runner/v1/messages_pb.ts";
import { createWorld } from "../support/engine_world.ts";

Deno.test("engine frees the slot of a job that ended just before the crash at once, and starts nothing for it", async () => {
  await using world = await createWorld({ capacity: 1 });
  const first = await world.start();
  world.onJournal = ({ event }) => {
    if (event === "terminal") first.kill();
  };
  await world.submit(1);
  await world.until("the crash", () => first.dead);
  world.onJournal = () => {};
  // Ten minutes without a controller: the executor has long ended.
  await world.clock.advance(600_000);
  await world.submit(2);
  const { engine } = await world.start();
  await world.cleaned(1, 5_000);
  await world.cleaned(2, 15_000);
  assert.equal(world.gitea.tasks.get(1n)?.result, Result.SUCCESS);
  assert.equal(world.runs.get("1"), 1);
  assert.ok(!world.events(1).includes("lost"), world.events(1).join());
  assert.equal(engine.pools.pod.free(), 1);
  world.assertClean();
});
