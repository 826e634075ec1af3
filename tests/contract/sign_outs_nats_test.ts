import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createSignOutStore } from "../../clients/nats/sign_out_store.ts";
import { createSignOuts, type SignOuts } from "../../controller/access/sign_outs.ts";
import { QueueError } from "../../controller/queue.ts";
import { createFakeSignOutStore } from "../fakes/sign_outs.ts";
import { call } from "../support/calls.ts";
import { eventually } from "../support/eventually.ts";
import { DEPS, type NatsWorld, openNatsWorld } from "../support/nats_world.ts";
import { inMemory, onNats } from "../support/store_worlds.ts";

const isConflict = (error: unknown) => error instanceof QueueError && error.code === "conflict";
const hashOf = (text: string) => createHash("sha256").update(text).digest("base64url");
const later = () => Date.now() + 3_600_000;

const STORES = {
  "fake sign-outs": inMemory(createFakeSignOutStore),
  "NATS sign-outs": onNats((connection) => createSignOutStore(connection, DEPS)),
} as const;

for (const [name, setup] of Object.entries(STORES)) {
  Deno.test(`${name}: a list is read back whole, and written over what was read alone`, async () => {
    await using world = await setup();
    const { store } = world;
    const empty = await store.read(call);
    assert.deepEqual(empty, { ended: new Map(), floor: 0, revision: 0 });
    const ended = new Map([[hashOf("a"), 5], [hashOf("b"), 6]]);
    await store.write({ ...empty, ended, floor: 4 }, call);
    const stored = await store.read(call);
    assert.deepEqual({ ended: stored.ended, floor: stored.floor }, { ended, floor: 4 });
    await assert.rejects(store.write({ ...empty, ended: new Map(), floor: 9 }, call), isConflict);
    assert.deepEqual(await store.read(call), stored);
  });

  Deno.test(`${name}: hint() tells at once and after each write, until aborted`, async () => {
    await using world = await setup();
    const { store } = world;
    const stop = new AbortController();
    let hints = 0;
    store.hint(() => hints += 1, stop.signal);
    await eventually(() => hints === 1, { what: "the first hint" });
    await store.write({ ...await store.read(call), floor: 1 }, call);
    await eventually(() => hints >= 2, { what: "the hint of a write" });
    stop.abort();
    const before = hints;
    await store.write({ ...await store.read(call), floor: 2 }, call);
    assert.equal(hints, before);
  });
}

/** Replicas, each with a connection of its own to the same server. */
function replicasOf(world: NatsWorld) {
  const stack = new AsyncDisposableStack();
  const connections = [world.connection];
  return {
    start(): SignOuts {
      const connection = stack.use(world.connect());
      connections.push(connection);
      const signOuts = createSignOuts(DEPS);
      stack.use(signOuts.share(createSignOutStore(connection, DEPS)));
      return signOuts;
    },
    /** The client's pause between two tries to connect goes on when it is closed meanwhile. */
    async connected(): Promise<void> {
      await eventually(() => connections.every(({ status }) => status().kind === "connected"), {
        what: "every connection to be there",
        timeoutMs: 20_000,
      });
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

Deno.test("a sign-out holds at other replicas at once, and after a crash of everything", async () => {
  await using world = await openNatsWorld({ jetstreamSync: "always" });
  const endsAt = later();
  const hash = hashOf("a");
  {
    await using replicas = replicasOf(world);
    const [one, other] = [replicas.start(), replicas.start()];
    assert.equal(await one.end(hash, endsAt), "shared");
    await eventually(() => other.has(hash, endsAt), { what: "the other replica to hear of it" });
  }
  await world.nats.kill9();
  await world.nats.restart();
  await using replicas = replicasOf(world);
  const restarted = replicas.start();
  await eventually(() => restarted.has(hash, endsAt), { what: "a new process to know it" });
  await replicas.connected();
});

Deno.test("a sign-out while NATS is away is here alone, and everywhere once that is back", async () => {
  await using world = await openNatsWorld();
  await using replicas = replicasOf(world);
  const [one, other] = [replicas.start(), replicas.start()];
  const endsAt = later();
  assert.equal(await one.end(hashOf("before"), endsAt), "shared");
  await world.nats.kill9();
  assert.equal(await one.end(hashOf("a"), endsAt), "here");
  assert.equal(one.has(hashOf("a"), endsAt), true);
  assert.equal(other.has(hashOf("a"), endsAt), false);
  await world.nats.restart();
  await eventually(() => other.has(hashOf("a"), endsAt), {
    what: "the other replica to hear of it",
    timeoutMs: 20_000,
  });
  await replicas.connected();
});
