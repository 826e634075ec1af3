import assert from "node:assert/strict";
import type { Executor } from "../../controller/backend.ts";
import type { ExecutorName } from "../../controller/model/ids.ts";
import { Result } from "../../proto/gen/runner/v1/messages_pb.ts";
import { createWorld, type World } from "../support/engine_world.ts";

/** What a create whose answer was lost has made beside the recorded one. */
function spareOf(executor: Executor, more: Partial<Executor> = {}): Executor {
  return { ...executor, uid: "late", identityBound: false, ...more };
}

async function startVm(runMs: number): Promise<World> {
  const world = await createWorld({ backends: ["pod", "vm"] });
  world.plan = () => ({ runMs });
  return world;
}

function made(world: World, task: number): Executor {
  const executor = world.vm.executors.get(world.executor(task));
  assert.ok(executor !== undefined);
  return executor;
}

Deno.test("engine starts a job at once whose recorded executor is gone and whose duplicate is there", async () => {
  await using world = await startVm(1_000);
  const first = await world.start();
  let taken = false;
  world.onJournal = ({ event }) => {
    if (event !== "identity_bound" || taken) return;
    taken = true;
    // The controller dies right after the record has the uid, and only the other one is left.
    first.kill();
  };
  await world.submit(1, { backend: "vm" });
  await world.until("the binding", () => taken);
  const recorded = made(world, 1);
  world.vm.vanish(recorded.name);
  world.vm.put(spareOf(recorded));
  await world.start();
  const from = world.clock.now();
  await world.cleaned(1, 120_000);
  assert.ok(world.clock.now() - from < 90_000, "long before MAX_WAIT");
  assert.equal(world.gitea.tasks.get(1n)?.result, Result.SUCCESS);
  world.assertClean();
});

Deno.test("engine deletes a duplicate that turns up after its job has ended, and it keeps no slot", async () => {
  await using world = await startVm(1_000);
  await world.start();
  await world.submit(1, { backend: "vm" });
  await world.until("the executor", () => world.vm.executors.has(world.executor(1)));
  const executor = made(world, 1);
  await world.cleaned(1, 120_000);
  world.vm.put(spareOf(executor));
  await world.until("the deletion", () => world.vm.executors.size === 0, 40_000);
  world.assertClean();
});

Deno.test("engine deletes at its start one without identity whose job has ended, and keeps a bound one", async () => {
  for (const isBound of [false, true]) {
    await using world = await startVm(1_000);
    const first = await world.start();
    await world.submit(1, { backend: "vm" });
    await world.until("the executor", () => world.vm.executors.has(world.executor(1)));
    const executor = made(world, 1);
    await world.cleaned(1, 120_000);
    first.kill();
    world.vm.put(spareOf(executor));
    if (isBound) (world.vm.bound as Map<ExecutorName, string>).set(executor.name, "spiffe://x/y");
    const { engine } = await world.start();
    await world.until("recovery", () => engine.ready());
    await world.clock.advance(60_000);
    assert.equal(world.vm.executors.size, isBound ? 1 : 0);
    assert.equal(engine.strangers("vm").length, isBound ? 1 : 0);
    world.vm.vanish(executor.name);
  }
});

Deno.test("engine starts although one that nobody needs cannot be deleted, and shows it", async () => {
  await using world = await startVm(1_000);
  const first = await world.start();
  await world.submit(1, { backend: "vm" });
  await world.until("the executor", () => world.vm.executors.has(world.executor(1)));
  const executor = made(world, 1);
  await world.cleaned(1, 120_000);
  first.kill();
  world.vm.put(spareOf(executor));
  world.vm.faults.failing.set("delete", "unavailable");
  const { engine } = await world.start();
  await world.until("recovery", () => engine.ready());
  assert.match(engine.strangers("vm")[0]?.why ?? "", /never got an identity/);
  world.vm.vanish(executor.name);
});

Deno.test("engine leaves one alone that is bound, or not signed as the recorded one is", async () => {
  for (
    const more of [
      { identityBound: true },
      { metadata: { labels: {}, annotations: {} } },
    ] satisfies Partial<Executor>[]
  ) {
    await using world = await startVm(200_000);
    await world.start();
    await world.submit(1, { backend: "vm" });
    await world.until("running", () => world.events(1).includes("running"));
    const executor = made(world, 1);
    world.vm.put(spareOf(executor, more));
    await world.clock.advance(60_000);
    assert.equal(made(world, 1).uid, "late");
    world.vm.put(executor);
    world.vm.vanish(executor.name);
  }
});
