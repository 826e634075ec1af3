import assert from "node:assert/strict";
import { QueueError } from "../../controller/queue.ts";
import { GiteaError } from "../../controller/gitea.ts";
import { Result } from "../../proto/gen/runner/v1/messages_pb.ts";
import { HAPPY, TO_READY } from "../support/engine_events.ts";
import { createWorld, type World } from "../support/engine_world.ts";

/** A world whose task 1 is ready and not claimed by itself. */
async function ready() {
  const world = await createWorld({ capacity: 1 });
  world.plan = () => ({ fate: "never_claims" });
  const controller = await world.start();
  const info = await world.submit(1);
  await world.until("ready", () => world.events(1).includes("backend_ready"));
  const call = new AbortController();
  return { world, controller, info, signal: call.signal, events: controller.engine.events };
}

Deno.test("claim() is granted to exactly one of two gates that ask at once", async () => {
  const { world, info, signal, events } = await ready();
  await using _world = world;
  const asked = ["a", "b"].map((gate) => events.claim(info.id, gate, signal));
  await world.clock.advance(1_000);
  const answers = await Promise.all(asked);
  assert.deepEqual(answers.map((answer) => answer.kind), ["granted", "refused"]);
  assert.equal(claimOf(world)?.gate, "a");
});

Deno.test("claim() is granted again to the gate that has it, and to no other", async () => {
  const { world, info, signal, events } = await ready();
  await using _world = world;
  world.gitea.tasks.get(1n)?.rows.push("waits", "waits");
  assert.deepEqual(await events.claim(info.id, "a", signal), { kind: "granted", logOffset: 2 });
  assert.deepEqual(await events.claim(info.id, "a", signal), { kind: "granted", logOffset: 2 });
  assert.equal((await events.claim(info.id, "b", signal)).kind, "refused");
  assert.deepEqual(world.events(1), [...TO_READY, "runner_claimed"]);
});

Deno.test("claim() answers wait while the record cannot be written, and the record decides afterwards", async () => {
  const { world, controller, info, signal, events } = await ready();
  await using _world = world;
  loseNextAnswer(world);
  assert.equal((await events.claim(info.id, "a", signal)).kind, "wait");
  assert.equal(claimOf(world)?.gate, "a", "it was written all the same");
  assert.equal((await events.claim(info.id, "b", signal)).kind, "refused");
  assert.equal(controller.engine.ledger.get(info.id)?.state.kind, "claimed");
  assert.equal((await events.claim(info.id, "a", signal)).kind, "granted");
  assert.deepEqual(world.events(1), [...TO_READY, "runner_claimed"]);
});

Deno.test("claim() whose writing seemed to fail is never followed by a second executor", async () => {
  const { world, info, signal, events } = await ready();
  await using _world = world;
  loseNextAnswer(world);
  assert.equal((await events.claim(info.id, "a", signal)).kind, "wait");
  world.pod.end(world.executor(1));
  await world.cleaned(1, 120_000);
  assert.equal(world.events(1).filter((e) => e === "executor_created").length, 1);
  assert.deepEqual(world.events(1).slice(-4), ["runner_claimed", "lost", "terminal", "cleaned"]);
  assert.equal(world.gitea.tasks.get(1n)?.result, Result.FAILURE);
  world.assertClean();
});

Deno.test("claim() is finished when its caller has gone, and told to who asks again", async () => {
  const { world, info, events } = await ready();
  await using _world = world;
  const held = Promise.withResolvers<void>();
  world.store.faults.beforeWrite = () => held.promise;
  const caller = new AbortController();
  const asked = events.claim(info.id, "a", caller.signal);
  await world.clock.advance(0);
  caller.abort();
  assert.equal((await asked).kind, "wait");
  held.resolve();
  await world.until("the claim", () => world.events(1).includes("runner_claimed"));
  const again = new AbortController();
  assert.equal((await events.claim(info.id, "a", again.signal)).kind, "granted");
});

Deno.test("claim() answers wait while Gitea is away, and refuses a job that has ended there", async () => {
  const { world, info, signal, events } = await ready();
  await using _world = world;
  world.gitea.down = new GiteaError("unavailable", "Update task: refused");
  assert.equal((await events.claim(info.id, "a", signal)).kind, "wait");
  world.gitea.down = null;
  world.gitea.cancel(1n);
  assert.equal((await events.claim(info.id, "a", signal)).kind, "refused");
  await world.cleaned(1);
  assert.deepEqual(world.events(1), [...TO_READY, "cancelled", "terminal", "cleaned"]);
  assert.equal(world.runs.size, 0);
  world.assertClean();
});

Deno.test("claim() comes before the news that its executor has ended", async () => {
  const { world, info, signal, events } = await ready();
  await using _world = world;
  const held = Promise.withResolvers<void>();
  world.store.faults.beforeWrite = () => held.promise;
  const asked = events.claim(info.id, "a", signal);
  await world.clock.advance(0);
  world.pod.end(world.executor(1));
  await world.clock.advance(5_000);
  world.store.faults.beforeWrite = null;
  held.resolve();
  assert.equal((await asked).kind, "granted");
  await world.cleaned(1, 120_000);
  assert.equal(world.events(1).filter((e) => e === "executor_created").length, 1);
  assert.equal(world.gitea.tasks.get(1n)?.result, Result.FAILURE);
  world.assertClean();
});

Deno.test("claim() of an executor that has just died is not recorded: another one is made", async () => {
  const { world, info, signal, events } = await ready();
  await using _world = world;
  world.plan = () => ({});
  // Dead by the backend's word, which nobody has heard yet.
  world.pod.faults.muteWatch = true;
  world.pod.end(world.executor(1));
  world.pod.faults.muteWatch = false;
  assert.equal((await events.claim(info.id, "a", signal)).kind, "wait");
  await world.cleaned(1);
  assert.equal(world.events(1).filter((e) => e === "executor_created").length, 2);
  assert.equal(world.gitea.tasks.get(1n)?.result, Result.SUCCESS);
  world.assertClean();
});

Deno.test("claim() of an executor that somebody deletes is not recorded: another one is made", async () => {
  const { world, info, signal, events } = await ready();
  await using _world = world;
  world.plan = () => ({});
  const name = world.executor(1);
  const executor = world.pod.executors.get(name);
  assert.ok(executor !== undefined);
  world.pod.faults.muteWatch = true;
  world.pod.faults.holdDeletes = true;
  await world.pod.delete(executor, { signal });
  world.pod.faults.muteWatch = false;
  assert.equal((await events.claim(info.id, "a", signal)).kind, "wait");
  assert.equal(world.pod.executors.get(name)?.terminating, true);
  world.pod.faults.holdDeletes = false;
  world.pod.vanish(name);
  await world.cleaned(1);
  assert.equal(world.events(1).filter((e) => e === "executor_created").length, 2);
  assert.equal(world.gitea.tasks.get(1n)?.result, Result.SUCCESS);
  world.assertClean();
});

Deno.test("engine goes through when another wrote the record between its read and its write", async () => {
  await using world = await createWorld();
  let meddled = 0;
  world.store.faults.beforeWrite = (task, record) => {
    if (record.uid === null || meddled > 0) return;
    meddled++;
    world.store.touch(task);
  };
  await world.start();
  await world.submit(1);
  await world.cleaned(1);
  assert.equal(meddled, 1);
  assert.deepEqual(world.events(1), HAPPY);
  world.assertClean();
});

Deno.test("engine writes a record again that somebody has deleted", async () => {
  await using world = await createWorld();
  world.plan = () => ({ runMs: 10_000 });
  await world.start();
  await world.submit(1);
  await world.until("running", () => world.events(1).includes("running"));
  const [task] = world.store.tasks.keys();
  assert.ok(task !== undefined);
  await world.store.records().delete(task, { signal: new AbortController().signal });
  await world.cleaned(1);
  assert.deepEqual(world.events(1), HAPPY);
  world.assertClean();
});

Deno.test("engine stops acting once another controller has taken over", async () => {
  await using world = await createWorld();
  world.plan = () => ({ runMs: 5_000 });
  const first = await world.start();
  await world.submit(1);
  await world.until("running", () => world.events(1).includes("running"));
  await world.store.control.takeOver({ signal: new AbortController().signal });
  await world.until("fencing", () => first.fenced !== null);
  const calls = world.pod.calls.length;
  const records = [...world.store.tasks.values()];
  await world.submit(2);
  await world.clock.advance(120_000);
  const acting = world.pod.calls.slice(calls).filter((c) =>
    c.method !== "list" && c.method !== "find"
  );
  assert.deepEqual(acting, []);
  assert.deepEqual([...world.store.tasks.values()], records);
  assert.match(first.fenced ?? "", /epoch 2 leads, ours is 1/);
});

Deno.test("engine notices another leader while it has nothing to do", async () => {
  await using world = await createWorld();
  const first = await world.start();
  await world.store.control.takeOver({ signal: new AbortController().signal });
  await world.until("fencing", () => first.fenced !== null, 10_000);
});

Deno.test("engine does nothing before it has read the flags and raised the epoch", async () => {
  await using world = await createWorld();
  world.store.faults.away = true;
  const { engine } = await world.start();
  await world.submit(1);
  await world.clock.advance(30_000);
  assert.deepEqual(world.journal, []);
  assert.equal(world.pod.calls.length, 0);
  assert.equal(engine.epoch(), 0);
  world.store.faults.away = false;
  await world.cleaned(1);
  assert.equal(engine.epoch(), 1);
  world.assertClean();
});

function claimOf(world: World) {
  return [...world.store.tasks.values()][0]?.value.claimedBy;
}

/** Lets the next record be written, and its writer hear that the answer was lost. */
function loseNextAnswer(world: World): void {
  const { faults } = world.store;
  faults.afterWrite = () => {
    faults.afterWrite = null;
    throw new QueueError("timeout", "Write record: the answer was lost");
  };
}
