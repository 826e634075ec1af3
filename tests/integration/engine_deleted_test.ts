import assert from "node:assert/strict";
import { Result } from "../../proto/gen/runner/v1/messages_pb.ts";
import { createWorld, type World } from "../support/engine_world.ts";

const BY_HAND = "the executor was deleted by somebody other than the controller";

/** Somebody deletes the executor of job 1, which is given time to end. */
async function deleteByHand(world: World): Promise<void> {
  await world.until("running", () => world.events(1).includes("running"));
  world.pod.faults.holdDeletes = true;
  const executor = world.pod.executors.get(world.executor(1)) ?? assert.fail();
  await world.pod.delete(executor, { signal: new AbortController().signal });
  await world.clock.advance(1_000);
  world.pod.faults.holdDeletes = false;
}

Deno.test("engine says of a job that fails while somebody deletes its executor why it failed", async () => {
  await using world = await createWorld();
  world.plan = () => ({ runMs: 20_000, result: "failure" });
  const { engine } = await world.start();
  await world.submit(1);
  await deleteByHand(world);
  await world.cleaned(1);
  const task = world.gitea.tasks.get(1n);
  assert.equal(task?.result, Result.FAILURE);
  assert.equal(task?.rows.at(-1), `gitea-dynamic-runner: ${BY_HAND}`);
  const { code, detail } = engine.ledger.get(world.id(1))?.reason ?? assert.fail();
  assert.deepEqual({ code, detail }, { code: "executor_lost", detail: BY_HAND });
  world.assertClean();
});

Deno.test("engine says of a job without a result that somebody has deleted its executor", async () => {
  await using world = await createWorld();
  world.plan = () => ({ runMs: 20_000, fate: "dies_running" });
  const { engine } = await world.start();
  await world.submit(1);
  await deleteByHand(world);
  // No gate says anything: silence has to prove it.
  await world.cleaned(1, 120_000);
  const task = world.gitea.tasks.get(1n);
  assert.equal(task?.result, Result.FAILURE);
  const { code, detail } = engine.ledger.get(world.id(1))?.reason ?? assert.fail();
  assert.equal(code, "executor_lost");
  assert.match(detail, new RegExp(`^${BY_HAND}; `));
  assert.ok(task?.rows.at(-1)?.includes(BY_HAND), task?.rows.join("\n"));
  world.assertClean();
});

Deno.test("engine says of an executor that vanishes that somebody has deleted it", async () => {
  await using world = await createWorld();
  world.plan = () => ({ runMs: 20_000, fate: "vanishes_running" });
  const { engine } = await world.start();
  await world.submit(1);
  await deleteByHand(world);
  await world.cleaned(1, 120_000);
  assert.equal(
    engine.ledger.get(world.id(1))?.reason?.detail,
    `the executor vanished without a result: ${BY_HAND}`,
  );
  world.assertClean();
});

Deno.test("engine says nothing of a deletion that does not keep the job from its success", async () => {
  await using world = await createWorld();
  world.plan = () => ({ runMs: 20_000 });
  const { engine } = await world.start();
  await world.submit(1);
  await deleteByHand(world);
  await world.cleaned(1);
  const task = world.gitea.tasks.get(1n);
  assert.equal(task?.result, Result.SUCCESS);
  assert.ok(!task?.rows.some((row) => row.includes("deleted")), task?.rows.join("\n"));
  assert.equal(engine.ledger.get(world.id(1))?.reason, null);
  world.assertClean();
});
