import assert from "node:assert/strict";
import { Result } from "../../proto/gen/runner/v1/messages_pb.ts";
import { FROM_CLAIM, HAPPY, TO_READY } from "../support/engine_events.ts";
import { createWorld, type World } from "../support/engine_world.ts";

/** Kills the controller at the moment when `event` of task 1 is told for the first time. */
async function runUntil(world: World, event: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const first = await world.start();
  world.onJournal = (entry) => {
    if (entry.event !== event || entry.assignment !== world.id(1)) return;
    first.kill();
    resolve();
  };
  await world.submit(1);
  await world.until(`event ${event}`, () => world.events(1).includes(event), 60_000);
  await promise;
  world.onJournal = () => {};
}

// After the last event there is nothing left to do.
for (const event of HAPPY.slice(0, -1)) {
  Deno.test(`engine goes on after a crash at "${event}"`, async () => {
    await using world = await createWorld({ capacity: 1 });
    await runUntil(world, event);
    await world.submit(2);
    const second = await world.start();
    await world.cleaned(2, 300_000);
    const events = world.events(1);
    assert.equal(events.filter((e) => e === "cleaned").length, 1, events.join());
    for (const once of FROM_CLAIM) {
      // What was told but not written down yet is told again; what follows in the same breath is not.
      const allowed = once === "terminal" && event === "terminal"
        ? 2
        : once === "running" && event === "acked"
        ? 0
        : 1;
      assert.equal(events.filter((e) => e === once).length, allowed, `${once} in ${events.join()}`);
    }
    assert.equal(world.gitea.tasks.get(1n)?.result, Result.SUCCESS);
    assert.equal(world.pod.peak, 1);
    assert.equal(second.engine.pools.pod.free(), 1);
    assert.deepEqual(world.events(2), HAPPY);
    world.assertClean();
  });
}

interface Detour {
  readonly at: string;
  readonly prepare: (world: World) => void;
  readonly result: Result;
}

const detours: readonly Detour[] = [
  {
    at: "executor_found",
    prepare: (world) => void (world.pod.faults.loseNextAnswer = true),
    result: Result.SUCCESS,
  },
  {
    at: "backend_retry",
    prepare: (world) => void world.pod.faults.failing.set("bindIdentity", "unavailable"),
    result: Result.SUCCESS,
  },
  {
    at: "backend_pending",
    prepare: (world) => void (world.pod.faults.withholdTarget = true),
    result: Result.SUCCESS,
  },
  {
    at: "claim_timeout",
    prepare: (world) => void (world.plan = (_, attempt) => attempt === 1 ? NEVER : {}),
    result: Result.SUCCESS,
  },
  {
    at: "parked",
    prepare: (world) => void (world.plan = (_, attempt) => attempt <= 5 ? FAILS : {}),
    result: Result.SUCCESS,
  },
  {
    at: "cancelled",
    prepare(world) {
      world.plan = () => NEVER;
      world.onJournal = ({ event }) => {
        if (event === "backend_ready") world.gitea.cancel(1n);
      };
    },
    result: Result.CANCELLED,
  },
  {
    at: "lost",
    prepare: (world) => void (world.plan = () => ({ fate: "gives_up" })),
    result: Result.FAILURE,
  },
];
const NEVER = { fate: "never_claims" } as const;
const FAILS = { fate: "ends_before_claim" } as const;
for (const { at, prepare, result } of detours) {
  Deno.test(`engine goes on after a crash at "${at}"`, async () => {
    await using world = await createWorld({ capacity: 1 });
    prepare(world);
    const first = await world.start();
    const before = world.onJournal;
    world.onJournal = (entry) => {
      before(entry);
      if (entry.event === at) first.kill();
    };
    await world.submit(1);
    await world.until(at, () => first.dead, 300_000);
    world.onJournal = () => {};
    world.pod.faults.failing.clear();
    if (at === "backend_pending") world.pod.giveTarget(world.executor(1));
    if (at === "claim_timeout") world.pod.vanish(world.executor(1));
    await world.start();
    await world.cleaned(1, 400_000);
    assert.equal(world.events(1).filter((e) => e === "cleaned").length, 1);
    assert.equal(world.gitea.tasks.get(1n)?.result, result);
    assert.equal(world.pod.peak, 1);
    world.assertClean();
  });
}

Deno.test("engine leaves nothing behind when it crashes at the very end", async () => {
  await using world = await createWorld();
  await runUntil(world, "cleaned");
  await world.start();
  await world.clock.advance(60_000);
  world.assertClean();
  assert.deepEqual(world.events(1), HAPPY);
});

Deno.test("engine takes over a claimed job whose message is not acknowledged", async () => {
  await using world = await createWorld({ capacity: 1 });
  world.plan = () => ({ runMs: 20_000 });
  await runUntil(world, "runner_claimed");
  const second = await world.start();
  const { ledger } = second.engine;
  await world.until("recovery", () => ledger.get(world.id(1)) !== undefined);
  const entry = ledger.get(world.id(1));
  assert.equal(entry?.state.kind, "claimed");
  assert.deepEqual(entry?.recovered?.proof, "record");
  await world.until("the ack", () => world.queue.stored().length === 0);
  assert.equal(ledger.get(world.id(1))?.state.kind, "running");
  await world.cleaned(1);
  assert.deepEqual(world.events(1), [...TO_READY, ...FROM_CLAIM]);
  assert.deepEqual([...world.handed.get("1") ?? []].length, 1);
  world.assertClean();
});

Deno.test("engine hands the task to the same gate when its answer was lost over a crash", async () => {
  await using world = await createWorld({ capacity: 1 });
  const first = await world.start();
  first.facade.loseAnswers = 1;
  await world.submit(1);
  await world.until("the claim", () => world.events(1).includes("runner_claimed"));
  first.kill();
  assert.equal(world.handed.size, 0);
  await world.start();
  await world.cleaned(1);
  assert.deepEqual(world.events(1), HAPPY);
  world.assertClean();
});

Deno.test("engine takes over a pool that is full of unclaimed executors", async () => {
  await using world = await createWorld({ capacity: 3 });
  world.plan = () => ({ fate: "never_claims" });
  const first = await world.start();
  for (let task = 1; task <= 5; task++) await world.submit(task);
  await world.until("3 ready", () => count(world, "backend_ready") === 3);
  first.kill();
  for (const task of [1, 2, 3]) world.pod.vanish(world.executor(task));
  world.plan = () => ({});
  const second = await world.start();
  await world.until("all cleaned", () => count(world, "cleaned") === 5, 300_000);
  assert.ok(world.pod.peak <= 3);
  assert.equal(second.engine.pools.pod.free(), 3);
  world.assertClean();
});

Deno.test("engine takes over executors that wait for their claim, in a full pool", async () => {
  await using world = await createWorld({ capacity: 3 });
  const first = await world.start();
  world.onJournal = () => {
    if (count(world, "backend_ready") === 3) first.kill();
  };
  for (let task = 1; task <= 5; task++) await world.submit(task);
  await world.until("3 ready", () => count(world, "backend_ready") === 3);
  world.onJournal = () => {};
  assert.equal(count(world, "runner_claimed"), 0);
  await world.start();
  await world.until("all cleaned", () => count(world, "cleaned") === 5, 300_000);
  for (const task of [1, 2, 3]) {
    assert.equal(world.events(task).filter((e) => e === "executor_created").length, 1);
  }
  assert.equal(world.pod.peak, 3);
  world.assertClean();
});

Deno.test("engine restores more slots than a reduced capacity has, and admits none until they are free", async () => {
  await using world = await createWorld({ capacity: 3 });
  world.plan = (task) => ({ runMs: Number(task) * 5_000 });
  const first = await world.start();
  for (let task = 1; task <= 4; task++) await world.submit(task);
  await world.until("3 run", () => count(world, "running") === 3);
  first.kill();
  const second = await world.start({ capacity: { pod: 1, vm: 0 } });
  await world.until("recovery", () => second.engine.ready());
  const pool = second.engine.pools.pod;
  assert.equal(pool.holders().size, 3);
  assert.equal(pool.free(), 0);
  await world.until("the first end", () => count(world, "cleaned") === 1);
  assert.equal(pool.holders().size, 2);
  assert.equal(world.events(4).length, 0);
  await world.until("all cleaned", () => count(world, "cleaned") === 4, 300_000);
  assert.deepEqual(world.events(4), HAPPY);
  world.assertClean();
});

Deno.test("engine tells Gitea when the stored task of an unclaimed executor is gone", async () => {
  await using world = await createWorld();
  world.plan = () => ({ fate: "never_claims" });
  await runUntil(world, "backend_ready");
  await world.queue.remove(1, { signal: new AbortController().signal });
  const second = await world.start();
  await world.cleaned(1);
  assert.equal(second.engine.ledger.get(world.id(1))?.reason?.code, "payload_lost");
  assert.equal(world.gitea.tasks.get(1n)?.result, Result.FAILURE);
  world.assertClean();
});

Deno.test("engine keeps the times of parked jobs over a restart", async () => {
  await using world = await createWorld({ capacity: 1 });
  world.plan = () => ({ fate: "ends_before_claim" });
  await runUntil(world, "parked");
  world.plan = () => ({});
  // The controller died before it could write the parking down: so it is only tried again.
  await world.start();
  await world.cleaned(1);
  world.assertClean();
});

Deno.test("engine restores a parked job as parked", async () => {
  await using world = await createWorld({ capacity: 1 });
  world.plan = () => ({ fate: "ends_before_claim" });
  const first = await world.start();
  await world.submit(1);
  await world.until("parking", () => world.events(1).includes("parked"), 120_000);
  await world.clock.advance(1_000);
  const until = [...world.store.tasks.values()][0]?.value.parkedUntil ?? 0;
  assert.ok(until > world.clock.now());
  first.kill();
  world.plan = () => ({});
  const second = await world.start();
  await world.until("recovery", () => second.engine.ready());
  const entry = second.engine.ledger.get(world.id(1));
  assert.deepEqual(entry?.state, { kind: "parked", until });
  assert.equal(entry?.reason?.code, "parked");
  await world.submit(2);
  await world.cleaned(2);
  assert.ok(!world.events(1).includes("runner_claimed"));
  await world.cleaned(1, 400_000);
  world.assertClean();
});

function count(world: World, event: string): number {
  return world.journal.filter((e) => e.event === event).length;
}
