import assert from "node:assert/strict";
import { UNPROVEN } from "../../controller/proofs.ts";
import { parseTaskId } from "../../controller/model/ids.ts";
import { Result } from "../../proto/gen/runner/v1/messages_pb.ts";
import type { Plan } from "../support/fake_executor.ts";
import { add } from "../fakes/gitea_port.ts";
import { type Controller, createWorld, type World } from "../support/engine_world.ts";

/** Time enough for a heartbeat after a start. */
const BEAT_MS = 12_000;

/** Task 1 up to `event`; then the controller is killed and the bucket lost, whole or one record of it. */
async function loseAt(world: World, event: string, whole = true): Promise<void> {
  const first = await world.start();
  const { promise, resolve } = Promise.withResolvers<void>();
  world.onJournal = (entry) => {
    if (entry.event !== event || first.dead) return;
    first.kill();
    resolve();
  };
  await world.submit(1);
  await world.until(event, () => first.dead, 60_000);
  await promise;
  world.onJournal = () => {};
  // What was being written when it was killed is lost with the rest.
  await world.clock.advance(0);
  assert.ok(whole || world.store.tasks.size > 0);
  world.store.lose(whole ? undefined : parseTaskId("1"));
}

/** Whose executor is shown as unknown, and why. */
function unknown({ engine }: Controller): string[] {
  return engine.strangers("pod").filter((s) => s.ownership === "unknown").map((s) => s.why);
}

/** Starts a controller and waits until it has listed its executors. */
async function restart(world: World): Promise<Controller> {
  const controller = await world.start();
  await world.until("recovery", () => controller.engine.ready());
  return controller;
}

/** A job that ended as if nothing had happened: each row once, in order, after those of its waiting. */
function assertWhole(world: World, waitingRows?: number): void {
  const task = world.gitea.tasks.get(1n);
  assert.equal(task?.result, Result.SUCCESS);
  const rows = (task?.rows ?? []).filter((row) => row.startsWith("row of"));
  assert.equal(rows.length, 1, task?.rows.join("\n"));
  if (waitingRows !== undefined) {
    assert.ok(task?.rows[waitingRows]?.startsWith("row of"), task?.rows.join("\n"));
  }
  assert.equal(world.events(1).filter((e) => e === "executor_created").length, 1);
  world.assertClean();
}

for (const whole of [true, false]) {
  const what = whole ? "the bucket" : "the record";
  for (
    const [event, state] of [["running", "running"], ["runner_claimed", "claimed"]] as const
  ) {
    Deno.test(`engine takes over a ${state} job by its heartbeat when ${what} is lost`, async () => {
      await using world = await createWorld({ capacity: 1 });
      world.plan = () => ({ runMs: 60_000 });
      await loseAt(world, event, whole);
      const second = await restart(world);
      assert.deepEqual(unknown(second), [UNPROVEN]);
      assert.equal(second.engine.pools.pod.free(), 0);
      const entry = () => second.engine.ledger.get(world.id(1));
      await world.until("the proof", () => entry()?.recovered?.proof === "heartbeat", BEAT_MS);
      assert.ok((entry()?.recovered?.at ?? 0) > world.clock.now() - BEAT_MS);
      assert.deepEqual(unknown(second), []);
      assert.equal(second.engine.pools.pod.free(), 0);
      const { value } = [...world.store.tasks.values()][0] ?? {};
      const executor = world.pod.executors.get(world.executor(1));
      assert.equal(value?.uid, executor?.uid);
      assert.equal(value?.claimedBy?.gate, `gate-${executor?.uid}`);
      assert.deepEqual([value?.job, value?.epoch], ["job1", second.engine.epoch()]);
      await world.cleaned(1, 120_000);
      assertWhole(world);
    });
  }
}

for (const event of ["identity_bound", "backend_ready"]) {
  Deno.test(`engine goes on with an unclaimed executor when the bucket is lost at "${event}"`, async () => {
    await using world = await createWorld({ capacity: 1 });
    await loseAt(world, event);
    const second = await world.start();
    await world.cleaned(1, 300_000);
    assert.equal(second.engine.pools.pod.free(), 1);
    assertWhole(world);
  });
}

Deno.test("engine keeps the place of the job's rows after those of its waiting", async () => {
  await using world = await createWorld({ capacity: 1 });
  world.plan = () => ({ runMs: 60_000 });
  world.gitea.tasks.set(1n, { ...add(), rows: ["Waiting", "Waiting still"] });
  await loseAt(world, "running");
  await restart(world);
  await world.until("the proof", () => world.store.tasks.size === 1, BEAT_MS);
  const logOffset = [...world.store.tasks.values()][0]?.value.logOffset;
  assert.equal(logOffset, world.gitea.tasks.get(1n)?.rows.length);
  assert.ok((logOffset ?? 0) >= 2);
  await world.cleaned(1, 120_000);
  assertWhole(world, logOffset);
});

Deno.test("engine tells Gitea when record and stored task of an unclaimed executor are gone", async () => {
  await using world = await createWorld({ capacity: 1 });
  await loseAt(world, "backend_ready");
  await world.queue.remove(1, { signal: new AbortController().signal });
  const second = await world.start();
  await world.cleaned(1, 120_000);
  assert.equal(second.engine.ledger.get(world.id(1))?.reason?.code, "payload_lost");
  assert.equal(world.gitea.tasks.get(1n)?.result, Result.FAILURE);
  assert.equal(world.runs.size, 0);
  world.assertClean();
});

Deno.test("engine makes no second executor, and says nothing in the log, while the first is silent", async () => {
  await using world = await createWorld({ capacity: 2 });
  world.plan = () => ({ fate: "never_claims" });
  await loseAt(world, "backend_ready");
  const rows = world.gitea.tasks.get(1n)?.rows.length;
  const second = await restart(world);
  await world.clock.advance(300_000);
  assert.deepEqual(unknown(second), [UNPROVEN]);
  assert.equal(second.engine.pools.pod.free(), 1);
  const entry = second.engine.ledger.get(world.id(1));
  assert.deepEqual([entry?.state.kind, entry?.reason?.code], ["stored", "awaiting_claim"]);
  assert.equal(world.events(1).filter((e) => e === "executor_created").length, 1);
  assert.equal(world.gitea.tasks.get(1n)?.rows.length, rows);
  // Others go on beside it.
  world.plan = () => ({});
  await world.submit(2);
  await world.cleaned(2);
});

for (const end of ["vanish", "end"] as const) {
  Deno.test(`engine does not begin a job again that an executor may have begun: ${end}`, async () => {
    await using world = await createWorld({ capacity: 1 });
    world.plan = () => ({ fate: "never_claims" });
    await loseAt(world, "backend_ready");
    world.plan = () => ({});
    const second = await restart(world);
    world.pod[end](world.executor(1));
    await world.cleaned(1, 120_000);
    assert.equal(second.engine.ledger.get(world.id(1))?.reason?.code, "executor_lost");
    assert.equal(world.gitea.tasks.get(1n)?.result, Result.FAILURE);
    assert.match(world.gitea.tasks.get(1n)?.rows.join(" ") ?? "", /nobody can tell/);
    assert.equal(world.events(1).filter((e) => e === "executor_created").length, 1);
    assert.equal(world.queue.stored().length, 0);
  });
}

Deno.test("engine notices by its list that a silent executor is gone", async () => {
  await using world = await createWorld({ capacity: 1 });
  world.plan = () => ({ fate: "never_claims" });
  await loseAt(world, "backend_ready");
  world.pod.faults.muteWatch = true;
  await restart(world);
  await world.clock.advance(1_000);
  world.pod.vanish(world.executor(1));
  await world.cleaned(1, 120_000);
  assert.equal(world.gitea.tasks.get(1n)?.result, Result.FAILURE);
});

const OLD: Partial<Plan> = { runMs: 60_000, old: true };
Deno.test("engine leaves a gate unknown that cannot say where its job's log begins", async () => {
  await using world = await createWorld({ capacity: 1 });
  world.plan = () => OLD;
  await loseAt(world, "running");
  const second = await restart(world);
  await world.until("the heartbeat", () => unknown(second)[0] !== UNPROVEN, BEAT_MS);
  assert.match(unknown(second).join(), /earlier release/);
  assert.equal(second.engine.pools.pod.free(), 0);
  assert.equal(second.engine.ledger.get(world.id(1)), undefined);
});

Deno.test("engine believes no gate of another identity, and only the gate that spoke first", async () => {
  await using world = await createWorld({ capacity: 1 });
  world.plan = () => ({ runMs: 60_000 });
  await loseAt(world, "running");
  const { facade, engine } = await restart(world);
  const id = world.id(1);
  const spiffeId = world.pod.bound.get(world.executor(1)) ?? "";
  const other = spiffeId.replace("/ci/", "/ci-fork/");
  const lie = { holdsTask: true, logOffset: 7 };
  facade.heartbeat({ id, spiffeId: other, gate: "thief" }, lie);
  await world.clock.advance(0);
  assert.equal(engine.ledger.get(id), undefined);
  await world.until("the proof", () => engine.ledger.get(id) !== undefined, BEAT_MS);
  facade.heartbeat({ id, spiffeId, gate: "thief" }, lie);
  const told = await facade.report(
    { id, spiffeId, gate: "thief" },
    () => Promise.reject(new Error("Report: this must not be reached")),
  );
  assert.equal(told.kind, "refused");
  await world.cleaned(1, 120_000);
  assertWhole(world);
});

Deno.test("engine stops when the bucket is lost under it, and the next one goes on", async () => {
  await using world = await createWorld({ capacity: 1 });
  world.plan = () => ({ runMs: 60_000 });
  await world.start().then((earlier) => earlier.kill());
  const first = await world.start();
  await world.submit(1);
  await world.until("running", () => world.events(1).includes("running"));
  world.store.lose();
  await world.until("the end", () => first.fenced !== null, 15_000);
  assert.match(first.fenced ?? "", /records are lost/);
  first.kill();
  const second = await restart(world);
  await world.until(
    "the proof",
    () => second.engine.ledger.get(world.id(1)) !== undefined,
    BEAT_MS,
  );
  await world.cleaned(1, 120_000);
  assertWhole(world);
});

Deno.test("engine does not take over what an operator has forgotten", async () => {
  await using world = await createWorld({ capacity: 1 });
  world.plan = () => ({ runMs: 600_000 });
  await loseAt(world, "running");
  const { engine } = await restart(world);
  const { name, uid } = world.pod.executors.get(world.executor(1)) ?? assert.fail();
  const forgotten = [{ name, uid, by: "op", at: 0, note: "" }];
  engine.setFlags("pod", { ...engine.flags("pod"), forgotten });
  await world.clock.advance(BEAT_MS);
  assert.deepEqual(engine.strangers("pod").map((s) => s.ownership), ["forgotten"]);
  assert.equal(engine.ledger.get(world.id(1)), undefined);
  assert.equal(engine.pools.pod.free(), 1);
});

Deno.test("engine proves again when the bucket does not take the record at first", async () => {
  await using world = await createWorld({ capacity: 1 });
  world.plan = () => ({ runMs: 60_000 });
  await loseAt(world, "running");
  await restart(world);
  let refusals = 2;
  world.store.faults.beforeWrite = () => {
    if (refusals-- > 0) throw new Error("Write: the fake bucket does not want to");
  };
  await world.cleaned(1, 180_000);
  assert.ok(refusals < 0);
  assertWhole(world);
});
