import assert from "node:assert/strict";
import { Result } from "../../proto/gen/runner/v1/messages_pb.ts";
import { FROM_CLAIM, HAPPY } from "../support/engine_events.ts";
import { createWorld, PODS_ON_CLUSTER } from "../support/engine_world.ts";

Deno.test("engine tells exactly the events of a job that goes well", async () => {
  await using world = await createWorld();
  const { engine } = await world.start();
  await world.submit(1);
  await world.cleaned(1);
  assert.deepEqual(world.events(1), HAPPY);
  assert.equal(world.gitea.tasks.get(1n)?.result, Result.SUCCESS);
  assert.equal(engine.pools.pod.free(), 4);
  world.assertClean();
  assert.deepEqual(world.errors, []);
});

Deno.test("engine names executor and phase in the worker's events only", async () => {
  await using world = await createWorld();
  await world.start();
  await world.submit(1);
  await world.cleaned(1);
  // Phases are the backend's own words; those of Pods begin with a capital letter.
  const told = world.journal.map(({ event, executor, phase }) => [
    ...[event, executor, phase?.toLowerCase()],
  ]);
  const executor = world.executor(1);
  assert.deepEqual(told.filter(([, name]) => name !== null), [
    ["executor_created", executor, "running"],
    ["identity_bound", executor, "running"],
  ]);
});

Deno.test("engine waits for an identity target that comes late, and says so", async () => {
  await using world = await createWorld();
  world.pod.faults.withholdTarget = true;
  await world.start();
  await world.submit(1);
  await world.until("two rounds", () => count(world.events(1), "backend_pending") === 2);
  world.pod.giveTarget(world.executor(1));
  await world.cleaned(1);
  assert.deepEqual(world.events(1), [
    "received",
    "capacity_acquired",
    "executor_absent",
    "executor_created",
    "identity_target_pending",
    "backend_pending",
    "executor_found",
    "identity_target_pending",
    "backend_pending",
    "executor_found",
    "identity_bound",
    "backend_ready",
    ...FROM_CLAIM,
  ]);
  world.assertClean();
});

Deno.test({
  name: "engine says in the backend's words why an executor does not ask for its job yet",
  // Pods whose image cannot be pulled are given up after a minute; here it waits for longer.
  ignore: PODS_ON_CLUSTER,
  async fn() {
    await using world = await createWorld();
    world.plan = () => ({ fate: "never_claims" });
    const { engine } = await world.start();
    await world.submit(1);
    await world.until("its executor is ready", () => world.events(1).includes("backend_ready"));
    const reason = () => engine.ledger.get(world.id(1))?.reason;
    assert.equal(reason()?.code, "awaiting_claim");
    const executor = world.pod.executors.get(world.executor(1));
    assert.ok(executor !== undefined);
    const waiting = { code: "image_pull", detail: "ErrImagePull: no such image" } as const;
    world.pod.put({ ...executor, waiting });
    await world.until("its image cannot be pulled", () => reason()?.code === "image_pull");
    assert.equal(reason()?.detail, waiting.detail);
    await world.until(
      "it is ready again after the claim timeout",
      () => count(world.events(1), "backend_ready") === 2,
      600_000,
    );
    assert.equal(reason()?.code, "image_pull");
    world.pod.put({ ...executor, waiting: null });
    await world.until("it waits for the claim", () => reason()?.code === "awaiting_claim");
  },
});

for (const capacity of [1, 4]) {
  Deno.test(`engine admits in the order of the stream and never more than ${capacity}`, async () => {
    await using world = await createWorld({ capacity });
    world.plan = (task) => ({ runMs: 500 + (Number(task) * 7_919) % 3_000 });
    await world.start();
    for (let task = 1; task <= 12; task++) await world.submit(task);
    await world.until("all cleaned", () => count(events(world), "cleaned") === 12, 120_000);
    const admitted = world.journal.filter((e) => e.event === "capacity_acquired");
    assert.deepEqual(
      admitted.map((e) => e.assignment),
      Array.from({ length: 12 }, (_, i) => world.id(i + 1)),
    );
    assert.equal(world.pod.peak, capacity);
    for (let task = 1; task <= 12; task++) assert.deepEqual(world.events(task), HAPPY);
    world.assertClean();
    assert.deepEqual(world.errors, []);
  });
}

Deno.test("engine admits in the order of the stream although the first record takes longest", async () => {
  await using world = await createWorld({ capacity: 3 });
  await world.start();
  let writing = 0;
  let most = 0;
  world.store.faults.beforeWrite = async (_task, record) => {
    if (record.uid !== null) return;
    most = Math.max(most, ++writing);
    await world.clock.sleep(record.job === "job1" ? 3_000 : 100);
    writing--;
  };
  for (let task = 1; task <= 5; task++) await world.submit(task);
  await world.until("all cleaned", () => count(events(world), "cleaned") === 5, 120_000);
  const admitted = world.journal.filter((e) => e.event === "capacity_acquired");
  assert.deepEqual(
    admitted.map((e) => e.assignment),
    [1, 2, 3, 4, 5].map((task) => world.id(task)),
  );
  assert.ok(most > 1, "records are written side by side");
  assert.equal(world.pod.peak, 3);
  for (let task = 1; task <= 5; task++) assert.deepEqual(world.events(task), HAPPY);
  world.assertClean();
});

Deno.test("engine keeps its backends apart: one that fails does not slow the other", async () => {
  await using world = await createWorld({ backends: ["pod", "vm"] });
  const { engine } = await world.start();
  world.pod.faults.failing.set("find", "unavailable").set("list", "unavailable");
  await world.submit(1, { backend: "pod" });
  await world.submit(2, { backend: "vm" });
  await world.cleaned(2);
  assert.deepEqual(world.events(2), HAPPY);
  assert.equal(engine.ledger.get(world.id(1))?.reason?.code, "backend_unavailable");
  world.pod.faults.failing.clear();
  await world.cleaned(1);
  world.assertClean();
});

Deno.test("engine starts without a backend that cannot be listed, and takes it in later", async () => {
  await using world = await createWorld({ backends: ["pod", "vm"] });
  world.pod.faults.failing.set("list", "unavailable");
  await world.submit(1, { backend: "pod" });
  await world.submit(2, { backend: "vm" });
  const { engine } = await world.start();
  await world.cleaned(2);
  assert.equal(engine.ready(), false);
  assert.deepEqual(world.events(1), []);
  world.pod.faults.failing.clear();
  await world.cleaned(1);
  assert.equal(engine.ready(), true);
  assert.deepEqual(world.events(1), HAPPY);
  world.assertClean();
});

function count(events: readonly string[], name: string): number {
  return events.filter((event) => event === name).length;
}

function events(world: { readonly journal: readonly { readonly event: string }[] }): string[] {
  return world.journal.map((e) => e.event);
}
