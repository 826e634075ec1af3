import assert from "node:assert/strict";
import { Result } from "../../proto/gen/runner/v1/messages_pb.ts";
import { HAPPY } from "../support/engine_events.ts";
import { createWorld, taskOf } from "../support/engine_world.ts";
import { add } from "../fakes/gitea_port.ts";
import { encodePlainEnvelope } from "../support/plain_envelope.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

const invalid: readonly {
  readonly name: string;
  readonly make: (world: Awaited<ReturnType<typeof createWorld>>) => Promise<Uint8Array>;
  readonly says: RegExp;
}[] = [
  {
    name: "whose content is another task's",
    make: async (world) => (await world.seal(taskOf(7))).data,
    says: /is named gitea-task-1, its content is not/,
  },
  {
    name: "of a backend whose queue this is not",
    make: async (world) => (await world.seal(taskOf(1, "vm"))).data,
    says: /is for vm, its message came to pod/,
  },
  {
    name: "that was changed",
    make: async (world) => {
      const text = new TextDecoder().decode((await world.seal(taskOf(1))).data);
      return bytes(text.replace("job1", "job2"));
    },
    says: /./,
  },
];
for (const { name, make, says } of invalid) {
  Deno.test(`engine fails a message ${name} at Gitea, then terminates it`, async () => {
    await using world = await createWorld();
    const { engine } = await world.start();
    await world.submit(7);
    world.gitea.tasks.set(1n, add());
    await world.publish(1, await make(world));
    await world.cleaned(1);
    await world.cleaned(7);
    assert.deepEqual(world.events(1), ["received", "invalid assignment", "terminal", "cleaned"]);
    assert.deepEqual(world.events(7), HAPPY);
    assert.equal(world.gitea.tasks.get(1n)?.result, Result.FAILURE);
    assert.match(world.gitea.tasks.get(1n)?.rows.join() ?? "", says);
    assert.match(world.queue.terminated.get(world.id(1)) ?? "", says);
    assert.equal(engine.ledger.get(world.id(1))?.reason?.code, "invalid");
    world.assertClean();
  });
}

const unreadable: readonly [string, Uint8Array][] = [
  ["of an unknown version", bytes('{"version":9}')],
  ["that is no envelope", bytes("hello")],
];
for (const [name, data] of unreadable) {
  Deno.test(`engine parks a message ${name}, and never throws it away`, async () => {
    await using world = await createWorld({ capacity: 1 });
    const { engine } = await world.start();
    world.gitea.tasks.set(1n, add());
    await world.publish(1, data);
    await world.submit(2);
    await world.cleaned(2);
    const entry = engine.ledger.get(world.id(1));
    assert.deepEqual(world.events(1), ["received", "unreadable"]);
    assert.equal(entry?.state.kind, "parked");
    assert.equal(entry?.reason?.code, "unreadable");
    await world.clock.advance(301_000);
    assert.deepEqual(world.events(1), ["received", "unreadable", "received", "unreadable"]);
    assert.deepEqual(world.queue.stored(), [world.id(1)]);
    world.gitea.cancel(1n);
    await world.cleaned(1, 300_000);
    world.assertClean();
  });
}

Deno.test("engine runs neither of two tasks that come under one id", async () => {
  await using world = await createWorld();
  world.plan = () => ({ fate: "never_claims" });
  await world.start();
  const info = await world.submit(1);
  await world.until("ready", () => world.events(1).includes("backend_ready"));
  const other = taskOf(1);
  other.secrets = { GITEA_TOKEN: "another" };
  world.queue.forgetIds();
  await world.publish(1, encodePlainEnvelope(info, other));
  await world.cleaned(1);
  assert.deepEqual(world.events(1).slice(6), ["conflicting assignment", "terminal", "cleaned"]);
  assert.equal(world.gitea.tasks.get(1n)?.result, Result.FAILURE);
  assert.equal(world.runs.size, 0);
  world.assertClean();
});

Deno.test("engine drops a second message of the same task, whenever it comes", async () => {
  await using world = await createWorld({ capacity: 2 });
  world.plan = () => ({ runMs: 10_000 });
  await world.start();
  await world.submit(1);
  const { data } = await world.seal(taskOf(1));
  for (const event of ["backend_ready", "running", "cleaned"]) {
    await world.until(event, () => world.events(1).includes(event));
    world.queue.forgetIds();
    await world.publish(1, data);
    await world.clock.advance(1_000);
  }
  assert.deepEqual(world.events(1), HAPPY);
  world.assertClean();
});

Deno.test("engine acknowledges a message whose record says that its job was claimed, after a restart", async () => {
  await using world = await createWorld();
  world.plan = () => ({ runMs: 20_000 });
  const first = await world.start();
  await world.submit(1);
  await world.until("running", () => world.events(1).includes("running"));
  first.kill();
  world.queue.forgetIds();
  await world.publish(1, (await world.seal(taskOf(1))).data);
  await world.start();
  await world.until("the ack", () => world.queue.stored().length === 0);
  await world.cleaned(1);
  assert.equal(world.events(1).filter((e) => e === "executor_created").length, 1);
  world.assertClean();
});

Deno.test("engine gives a message back that it cannot write a record for, and takes it later", async () => {
  await using world = await createWorld({ capacity: 1 });
  const { engine } = await world.start();
  world.store.faults.away = true;
  await world.submit(1);
  await world.clock.advance(20_000);
  assert.deepEqual(world.events(1), []);
  assert.equal(engine.ledger.get(world.id(1))?.message, null);
  assert.equal(engine.pools.pod.free(), 1);
  world.store.faults.away = false;
  await world.cleaned(1);
  assert.deepEqual(world.events(1), HAPPY);
  world.assertClean();
});

Deno.test("engine terminates a message that names no assignment", async () => {
  await using world = await createWorld();
  await world.start();
  const message = { id: "hello" as ReturnType<typeof world.id>, backend: "pod" as const };
  const call = { signal: new AbortController().signal };
  await world.queue.publish({ ...message, data: bytes("x"), headers: {} }, call);
  await world.until("the end", () => world.queue.stored().length === 0);
  assert.equal(world.queue.terminated.size, 1);
});

Deno.test("engine admits nothing while the backend is cordoned, and says so", async () => {
  await using world = await createWorld();
  world.store.setFlags("pod", { cordon: { by: "op", at: 0, note: "kernel upgrade" } });
  const first = await world.start();
  await world.submit(1);
  await world.clock.advance(10_000);
  assert.deepEqual(world.events(1), []);
  const reason = first.engine.ledger.get(world.id(1))?.reason;
  assert.deepEqual([reason?.code, reason?.detail], [
    "backend_cordoned",
    "cordoned by op: kernel upgrade",
  ]);
  first.kill();
  world.store.setFlags("pod", {
    drain: { by: "op", at: 0, note: "n", deadline: null, hold: true },
  });
  const second = await world.start();
  await world.clock.advance(10_000);
  assert.equal(second.engine.ledger.get(world.id(1))?.reason?.code, "backend_cordoned");
  second.kill();
  // A drain lets what is stored finish.
  world.store.setFlags("pod", {
    drain: { by: "op", at: 0, note: "n", deadline: null, hold: false },
  });
  await world.start();
  await world.cleaned(1);
  world.assertClean();
});
