import assert from "node:assert/strict";
import type { Engine } from "../../controller/engine.ts";
import { operate } from "../support/operating.ts";
import {
  type Controller,
  createWorld,
  type World,
  type WorldOptions,
} from "../support/engine_world.ts";

/** Task 1 is parked: its first five executors ended before the claim. */
async function parked(world: World) {
  world.plan = (task, attempt) => ({
    fate: task === "1" && attempt <= 5 ? "ends_before_claim" : "well",
  });
  const controller = await world.start();
  await world.submit(1);
  await world.until("parking", () => isParked(world, controller.engine), 120_000);
  return { ...controller, ...retrying(world, controller) };
}

/** How an operator retries on this controller. */
function retrying(world: World, controller: Controller) {
  const operating = operate(world, controller.engine, {
    guard() {
      if (controller.dead) throw new Error("This controller must not act any more");
    },
  });
  world.onEnd(() => operating[Symbol.asyncDispose]());
  return {
    operating,
    retry: (task: number) =>
      operating.act({ kind: "retry", id: world.id(task) }, { note: "repaired" }),
  };
}

function isParked(world: World, engine: Engine): boolean {
  const entry = engine.ledger.get(world.id(1));
  // Given back to the queue, too.
  return entry?.state.kind === "parked" && entry.message === null;
}

const open = (options: WorldOptions = { capacity: 1 }) => createWorld(options);

Deno.test("retry() tries a parked job at once, and the old message is gone", async () => {
  await using world = await open();
  const { retry, engine } = await parked(world);
  await world.clock.advance(5_000);
  const at = world.clock.now();
  const outcome = await retry(1);
  assert.ok(outcome.kind === "done");
  assert.deepEqual(
    [outcome.operation.state, outcome.operation.target, outcome.operation.note],
    ["done", world.id(1), "repaired"],
  );
  await world.cleaned(1, 30_000);
  assert.ok(world.clock.now() - at < 30_000);
  assert.equal(engine.ledger.get(world.id(1))?.result, "success");
  // Nothing comes when the old message's delay would have been over.
  await world.clock.advance(400_000);
  assert.equal(world.events(1).filter((event) => event === "cleaned").length, 1);
  world.assertClean();
});

Deno.test("retry() that fails again is parked again, and may be retried again", async () => {
  await using world = await open();
  const { retry, engine } = await parked(world);
  world.plan = (_, attempt) => ({ fate: attempt <= 7 ? "ends_before_claim" : "well" });
  for (let time = 2; time <= 3; time++) {
    assert.equal((await retry(1)).kind, "done");
    await world.until(
      `parking ${time}`,
      () =>
        world.events(1).filter((event) => event === "parked").length === time &&
        isParked(world, engine),
      120_000,
    );
  }
  assert.equal((await retry(1)).kind, "done");
  await world.cleaned(1, 30_000);
  world.assertClean();
});

Deno.test("retry() refuses what is not parked, and says what it is", async () => {
  await using world = await open();
  const { retry } = await parked(world);
  const [first, second] = await Promise.all([
    retry(1),
    retry(1),
  ]);
  assert.deepEqual([first?.kind, second?.kind].sort(), ["conflict", "done"]);
  await world.cleaned(1, 30_000);
  const late = await retry(1);
  assert.ok(late.kind === "conflict");
  assert.partialDeepStrictEqual(late.current, { state: "cleaned" });
  assert.match(late.detail, /Retry only what is parked: "gitea-task-1" is cleaned/);
  assert.equal((await retry(9)).kind, "absent");
  world.assertClean();
});

Deno.test("retry() that NATS is away for is a running operation, and holds when it is back", async () => {
  await using world = await open();
  const { retry, operating } = await parked(world);
  world.queue.faults.away = true;
  const outcome = await retry(1);
  assert.ok(outcome.kind === "done");
  assert.equal(outcome.operation.state, "running");
  world.queue.faults.away = false;
  world.queue.wake();
  await world.cleaned(1, 30_000);
  assert.equal(operating.operations.get(outcome.operation.id)?.state, "done");
  world.assertClean();
});

for (const calls of [1, 2, 3, 4]) {
  Deno.test(`retry() that the controller does not survive loses nothing, killed after ${calls} calls`, async () => {
    await using world = await open();
    const { retry, killAfter, kill } = await parked(world);
    killAfter(calls);
    await retry(1).catch(() => {});
    kill();
    await world.start();
    await world.cleaned(1, 400_000);
    assert.equal(world.runs.get("1"), 1);
    world.assertClean();
  });
}

Deno.test("retry() of one that was parked before a restart works without its old delivery", async () => {
  await using world = await open();
  const { kill } = await parked(world);
  kill();
  const controller = await world.start();
  const { engine } = controller;
  await world.until("recovery", () => engine.ledger.get(world.id(1))?.state.kind === "parked");
  const { retry } = retrying(world, controller);
  assert.equal((await retry(1)).kind, "done");
  await world.cleaned(1, 30_000);
  world.assertClean();
});
