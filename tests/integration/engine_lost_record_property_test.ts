import assert from "node:assert/strict";
import { Result } from "../../proto/gen/runner/v1/messages_pb.ts";
import { fc } from "../support/property.ts";
import { createWorld, type World } from "../support/engine_world.ts";

const CAPACITY = 2;
const TASKS = 5;
const TIMES = {
  claimTimeoutMs: 20_000,
  maxWaitMs: 300_000,
  lifecycle: { listMs: 5_000, tickMs: 1_000, silenceMs: 15_000, lingerMs: 10_000, deafMs: 20_000 },
};

/** After so many calls of the controller it is killed; then the bucket is lost, or stays. */
const crash = fc.record({
  afterMs: fc.integer({ min: 0, max: 15_000 }),
  calls: fc.nat(80),
  lost: fc.boolean(),
});
const script = fc.record({
  crashes: fc.array(crash, { minLength: 1, maxLength: 5 }),
  runsMs: fc.array(fc.integer({ min: 0, max: 40_000 }), { minLength: TASKS, maxLength: TASKS }),
});

Deno.test("engine runs each job once and ends it whenever the bucket is lost with the controller", async () => {
  await fc.assert(
    fc.asyncProperty(script, async ({ crashes, runsMs }) => {
      await using world = await createWorld({ capacity: CAPACITY, engine: TIMES });
      world.plan = (task) => ({ runMs: runsMs[Number(task) - 1] ?? 0 });
      let controller = await world.start();
      for (let task = 1; task <= TASKS; task++) await world.submit(task);
      for (const { afterMs, calls, lost } of crashes) {
        await world.clock.advance(afterMs);
        controller.killAfter(calls);
        await world.clock.advance(3_000);
        controller.kill();
        await world.clock.advance(0);
        if (lost) world.store.lose();
        controller = await world.start();
        checkSlots(world);
      }
      const ended = () =>
        [...world.gitea.tasks.values()].every(({ result }) => result !== Result.UNSPECIFIED);
      await world.until("the end of all", ended, 900_000);
      await world.until("an empty queue", () => world.queue.stored().length === 0, 60_000);
      for (const [task, gates] of world.handed) assert.equal(gates.size, 1, `gates of ${task}`);
      for (const [task, count] of world.runs) {
        assert.equal(count, 1, `runs of ${task}`);
        const { rows, result } = world.gitea.tasks.get(BigInt(task)) ?? assert.fail();
        assert.equal(result, Result.SUCCESS, `result of ${task}: ${rows.join(" | ")}`);
        const own = rows.filter((row) => row.startsWith("row of")).length;
        assert.equal(own, 1, `rows of ${task}: ${rows.join(" | ")}`);
      }
      checkSlots(world);
    }),
    { numRuns: 60 },
  );
});

function checkSlots(world: World): void {
  assert.ok(world.pod.peak <= CAPACITY, `${world.pod.peak} executors at once`);
}
