import assert from "node:assert/strict";
import type { Engine } from "../../controller/engine.ts";
import { createWorld, type World } from "../support/engine_world.ts";

const CAPACITY = 4;
/** How long a parked message stays away. */
const PARK_MS = 300_000;
const FAILED = 20;

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

/** All executors of these tasks end before they claim anything, until `repaired()`. */
function breakTasks(world: World, count: number): { repaired(): void } {
  let broken = true;
  world.plan = (task) => ({
    fate: broken && Number(task) <= count ? "ends_before_claim" : "well",
  });
  return { repaired: () => void (broken = false) };
}

async function parkAll(world: World, engine: Engine, count: number): Promise<void> {
  for (const task of numbers(count)) await world.submit(task);
  const parked = () =>
    numbers(count).every((task) => {
      const entry = engine.ledger.get(world.id(task));
      return entry?.state.kind === "parked" && entry.message === null;
    });
  // Each takes half a minute of failures, so many at a time as there are slots.
  await world.until("all to be parked", parked, 60_000 * Math.ceil(count / CAPACITY));
}

Deno.test("20 jobs whose executors fail, then repaired: the next starts within 60 s, all run", async () => {
  await using world = await createWorld({ capacity: CAPACITY });
  const fault = breakTasks(world, FAILED);
  await world.start();
  for (const task of numbers(FAILED)) await world.submit(task);
  await world.clock.advance(20_000);
  fault.repaired();
  const at = world.clock.now();
  await world.until("the next start", () => world.runs.size > 0, 60_000);
  assert.ok(world.clock.now() - at <= 60_000);
  for (const task of numbers(FAILED)) await world.cleaned(task, 120_000);
  world.assertClean();
});

Deno.test("parked jobs come again by themselves when their time is over, and run", async () => {
  await using world = await createWorld({ capacity: CAPACITY });
  const fault = breakTasks(world, 2);
  const { engine } = await world.start();
  await parkAll(world, engine, 2);
  fault.repaired();
  const at = world.clock.now();
  await world.clock.advance(PARK_MS / 2);
  assert.equal(world.runs.size, 0, "not before the time is over");
  for (const task of [1, 2]) await world.cleaned(task, PARK_MS);
  assert.ok(world.clock.now() - at <= PARK_MS + 10_000);
  assert.deepEqual([world.runs.get("1"), world.runs.get("2")], [1, 1]);
  world.assertClean();
});

Deno.test("30 parked jobs hold no slot and do not slow a good one", async () => {
  await using world = await createWorld({ capacity: CAPACITY });
  const count = 30;
  const timeOf = async (task: number) => {
    const at = world.clock.now();
    await world.submit(task);
    await world.cleaned(task, 30_000);
    return world.clock.now() - at;
  };
  const fault = breakTasks(world, count);
  const { engine } = await world.start();
  const alone = await timeOf(101);
  await parkAll(world, engine, count);
  assert.deepEqual([...engine.pools.pod.holders()], [], "no slot is held");
  assert.equal(await timeOf(102), alone);
  fault.repaired();
  for (const task of numbers(count)) await world.cleaned(task, 2 * PARK_MS);
  world.assertClean();
});
