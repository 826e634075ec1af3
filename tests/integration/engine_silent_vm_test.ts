import assert from "node:assert/strict";
import type { BackendName } from "../../controller/model/ids.ts";
import { Result } from "../../proto/gen/runner/v1/messages_pb.ts";
import { createWorld, type World } from "../support/engine_world.ts";

/** A job whose program is gone, and whose backend goes on calling its executor running. */
async function silentJob(world: World, backend: BackendName): Promise<void> {
  world.plan = () => ({ fate: "dies_running" });
  Object.assign(world[backend], { end() {} });
  await world.start();
  await world.submit(1, { backend });
  await world.until("running", () => world.events(1).includes("running"));
}

Deno.test("engine gives up a microVM that has been silent for three minutes, and deletes it", async () => {
  await using world = await createWorld({ backends: ["vm"] });
  await silentJob(world, "vm");
  await world.clock.advance(170_000);
  assert.ok(!world.events(1).includes("lost"));
  await world.until("the loss", () => world.events(1).includes("lost"), 15_000);
  await world.cleaned(1);
  const task = world.gitea.tasks.get(1n);
  assert.equal(task?.result, Result.FAILURE);
  assert.match(task?.rows.at(-1) ?? "", /silent for 3 minutes/);
  assert.equal(world.runs.get("1"), 1);
  world.assertClean();
});

Deno.test("engine says of a silent microVM that it is paused, if it is", async () => {
  await using world = await createWorld({ backends: ["vm"] });
  await silentJob(world, "vm");
  const executor = world.vm.executors.get(world.executor(1));
  assert.ok(executor !== undefined);
  const detail = "Paused: Sandbox is paused: resume the sandbox, or release the job";
  world.vm.put({ ...executor, phase: "Paused", waiting: { code: "executor_starting", detail } });
  await world.until("the loss", () => world.events(1).includes("lost"), 200_000);
  await world.cleaned(1);
  const rows = world.gitea.tasks.get(1n)?.rows ?? [];
  assert.match(rows.at(-1) ?? "", /silent for 3 minutes.*\(Paused: Sandbox is paused: resume/);
  world.assertClean();
});

Deno.test("engine counts the silence of a microVM from the start of its own facade", async () => {
  await using world = await createWorld({ backends: ["vm"] });
  world.plan = () => ({ fate: "dies_running" });
  Object.assign(world.vm, { end() {} });
  const first = await world.start();
  await world.submit(1, { backend: "vm" });
  await world.until("running", () => world.events(1).includes("running"));
  first.kill();
  await world.clock.advance(600_000);
  await world.start();
  await world.clock.advance(170_000);
  assert.ok(!world.events(1).includes("lost"));
  await world.until("the loss", () => world.events(1).includes("lost"), 15_000);
  await world.cleaned(1);
  world.assertClean();
});

Deno.test("engine does not give up a Pod for its silence alone", async () => {
  await using world = await createWorld();
  await silentJob(world, "pod");
  await world.clock.advance(600_000);
  assert.ok(!world.events(1).includes("lost"));
  assert.equal(world.gitea.tasks.get(1n)?.result, Result.UNSPECIFIED);
});

/** A job that ends well, in an executor that its backend goes on calling running. */
async function unendedJob(world: World, backend: BackendName): Promise<void> {
  Object.assign(world[backend], { end() {} });
  await world.start();
  await world.submit(1, { backend });
  await world.until("the end", () => world.events(1).includes("terminal"));
}

Deno.test("engine deletes a microVM soon after its gate has said goodbye", async () => {
  await using world = await createWorld({ backends: ["vm"] });
  await unendedJob(world, "vm");
  await world.cleaned(1, 10_000);
  assert.equal(world.gitea.tasks.get(1n)?.result, Result.SUCCESS);
  world.assertClean();
});

Deno.test("engine waits for the backend's word on a Pod whose gate has said goodbye", async () => {
  await using world = await createWorld();
  await unendedJob(world, "pod");
  await world.clock.advance(50_000);
  assert.ok(!world.events(1).includes("cleaned"));
  await world.cleaned(1, 20_000);
  world.assertClean();
});

/** A job whose first executor never asks for it, and that its backend calls running. */
async function unaskedJob(world: World, backend: BackendName): Promise<void> {
  world.plan = (_, attempt) => ({ fate: attempt === 1 ? "never_claims" : "well" });
  await world.start();
  await world.submit(1, { backend });
  await world.until("the time-out", () => world.events(1).includes("claim_timeout"), 250_000);
}

const made = (world: World) => world.events(1).filter((event) => event === "executor_created");

Deno.test("engine replaces a microVM that has let its claim time out and says nothing", async () => {
  await using world = await createWorld({ backends: ["vm"], capacity: 1 });
  await unaskedJob(world, "vm");
  await world.until("the failure", () => world.events(1).includes("backend_retry"), 5_000);
  const { detail } = world.journal.find(({ event }) => event === "backend_retry") ?? {};
  assert.match(detail ?? "", /not asked for its job and has been silent for 3 minutes/);
  await world.cleaned(1);
  assert.equal(made(world).length, 2);
  assert.equal(world.vm.peak, 1, "at a time");
  assert.equal(world.gitea.tasks.get(1n)?.result, Result.SUCCESS);
  world.assertClean();
});

Deno.test("engine waits on for a microVM that lives, though its claim has timed out", async () => {
  await using world = await createWorld({ backends: ["vm"], capacity: 1 });
  world.plan = () => ({ fate: "never_claims" });
  const { engine } = await world.start();
  await world.submit(1, { backend: "vm" });
  for (let minutes = 0; minutes < 20; minutes++) {
    await world.clock.advance(60_000);
    engine.events.heartbeat(world.id(1), { gate: "alive", holdsTask: false });
  }
  assert.ok(world.events(1).filter((event) => event === "claim_timeout").length >= 4);
  assert.equal(made(world).length, 1);
});

Deno.test("engine does not replace a Pod for its silence alone", async () => {
  await using world = await createWorld({ capacity: 1 });
  await unaskedJob(world, "pod");
  await world.clock.advance(600_000);
  assert.equal(made(world).length, 1);
});
