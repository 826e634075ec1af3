import assert from "node:assert/strict";
import { Result } from "../../proto/gen/runner/v1/messages_pb.ts";
import { createWorld } from "../support/engine_world.ts";

Deno.test("engine frees the slot of a job that ended just before the crash at once, and starts nothing for it", async () => {
  await using world = await createWorld({ capacity: 1 });
  world.plan = (task) => task === "1" ? { fate: "no_goodbye" } : {};
  const first = await world.start();
  world.onJournal = ({ event }) => {
    // Gitea has the result and the gate its answer; what is not written is the note of it.
    if (event === "running") world.store.faults.away = true;
  };
  await world.submit(1);
  await world.until("the executor's end", () => {
    const executor = world.pod.executors.get(world.executor(1));
    return executor !== undefined && executor.ended !== null;
  });
  first.kill();
  world.onJournal = () => {};
  world.store.faults.away = false;
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
