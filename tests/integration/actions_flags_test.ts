import assert from "node:assert/strict";
import type { ActionOutcome } from "../../controller/actions/actions.ts";
import { operate } from "../support/operating.ts";
import { createWorld } from "../support/engine_world.ts";

async function setup(options: Parameters<typeof createWorld>[0] = { capacity: 2 }) {
  await using stack = new AsyncDisposableStack();
  const world = stack.use(await createWorld({ backends: ["pod", "vm"], ...options }));
  const controller = await world.start();
  const operating = operate(world, controller.engine, { capacity: 2 });
  world.onEnd(() => operating[Symbol.asyncDispose]());
  const owned = stack.move();
  return {
    world,
    controller,
    ...operating,
    engine: controller.engine,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

function done(outcome: ActionOutcome) {
  assert.ok(outcome.kind === "done", JSON.stringify(outcome));
  return outcome.operation;
}

const POD = { backend: "pod" } as const;

Deno.test("cordon holds at once: nothing is admitted, who waits says why, labels are looked at", async () => {
  await using t = await setup();
  const { world, engine } = t;
  const operation = done(await t.act({ kind: "cordon", ...POD }));
  assert.deepEqual([operation.state, operation.by, operation.target], ["done", "alice", "pod"]);
  assert.equal(engine.flags("pod").cordon?.note, "a node is replaced");
  assert.equal((await world.store.flags.read("pod", call)).operation, operation.id);
  assert.equal(t.refreshes(), 1);
  await world.submit(1);
  await world.clock.advance(5_000);
  const { reason, state } = engine.ledger.get(world.id(1)) ?? assert.fail();
  assert.deepEqual([state.kind, reason?.code, reason?.detail], [
    "stored",
    "backend_cordoned",
    "cordoned by alice: a node is replaced",
  ]);
  done(await t.act({ kind: "resume", ...POD }));
  await world.cleaned(1);
  assert.equal(engine.flags("pod").cordon, null);
  world.assertClean();
});

Deno.test("cordon of a full pool tells those that wait, and a resume tells them again", async () => {
  await using t = await setup();
  const { world, engine } = t;
  world.plan = () => ({ runMs: 60_000 });
  for (const task of [1, 2, 3]) await world.submit(task);
  await world.clock.advance(3_000);
  const reason = () => engine.ledger.get(world.id(3))?.reason?.code;
  assert.equal(reason(), "awaiting_slot");
  await t.act({ kind: "cordon", ...POD });
  assert.equal(reason(), "backend_cordoned");
  await t.act({ kind: "resume", ...POD });
  assert.equal(reason(), "awaiting_slot");
});

Deno.test("capacity takes effect at once, up and down, and never takes a slot away", async () => {
  await using t = await setup();
  const { world, engine } = t;
  world.plan = () => ({ runMs: 30_000 });
  for (const task of [1, 2, 3, 4]) await world.submit(task);
  await world.clock.advance(3_000);
  assert.equal(engine.pools.pod.holders().size, 2);
  const operation = done(await t.act({ kind: "capacity", ...POD, value: 3 }));
  assert.deepEqual([operation.before, operation.after], [{ capacity: 2 }, { capacity: 3 }]);
  await world.clock.advance(3_000);
  assert.equal(engine.pools.pod.holders().size, 3);
  await t.act({ kind: "capacity", ...POD, value: 0 });
  assert.equal(engine.pools.pod.holders().size, 3);
  await world.clock.advance(60_000);
  assert.equal(engine.pools.pod.holders().size, 0);
  assert.equal(engine.ledger.get(world.id(4))?.state.kind, "stored");
  await t.act({ kind: "capacity", ...POD, value: null });
  await world.cleaned(4);
  world.assertClean();
});

Deno.test("act() refuses what does not fit, with how things stand, and the audit has it", async () => {
  await using t = await setup();
  await t.act({ kind: "cordon", ...POD });
  const again = await t.act({ kind: "cordon", ...POD }, { actor: BOB });
  assert.ok(again.kind === "conflict");
  assert.match(again.detail, /it was cordoned by "alice"/);
  assert.partialDeepStrictEqual(again.current, { name: "pod", cordoned: { by: "alice" } });
  // Its row stays, too.
  assert.deepEqual([again.operation?.state, again.operation?.error], ["failed", again.detail]);
  const label = await t.act({ kind: "label", ...POD, value: "vm" });
  assert.match(label.kind === "conflict" ? label.detail : "", /Choose backend "vm"/);
  const undo = await t.act({ kind: "undo", operation: "op-none" });
  assert.equal(undo.kind, "absent");
  const down = await t.act({ kind: "step-down" });
  assert.match(down.kind === "conflict" ? down.detail : "", /without an elector/);
  assert.deepEqual(
    t.audit.entries.map(({ actor, action, target, result }) => [actor, action, target, result]),
    [
      ["alice", "cordon", "pod", "done"],
      ["bob", "cordon", "pod", "refused"],
      ["alice", "label", "pod", "refused"],
      ["alice", "undo", "op-none", "refused"],
      ["alice", "step-down", "leader", "refused"],
    ],
  );
  const [first] = t.audit.entries;
  assert.partialDeepStrictEqual(first, {
    role: "operator",
    note: "a node is replaced",
    requestId: "request-1",
    before: { cordoned: null },
    after: { cordoned: { by: "alice", at: "2027-01-15T08:00:00.000Z" } },
    error: null,
  });
});

Deno.test("the same key is the same operation, also at the same time; for another action it is refused", async () => {
  await using t = await setup();
  const [a, b] = await Promise.all([
    t.act({ kind: "cordon", ...POD }, { key: "k-1" }),
    t.act({ kind: "cordon", ...POD }, { key: "k-1" }),
  ]);
  assert.equal(done(a ?? assert.fail()).id, done(b ?? assert.fail()).id);
  const later = done(await t.act({ kind: "cordon", ...POD }, { key: "k-1" }));
  assert.equal(later.id, done(a ?? assert.fail()).id);
  assert.equal((await t.act({ kind: "resume", ...POD }, { key: "k-1" })).kind, "differs");
  assert.equal(
    (await t.act({ kind: "cordon", ...POD }, { key: "k-1", note: "x" })).kind,
    "differs",
  );
  // Another one's keys are their own.
  const bob = await t.act({ kind: "resume", ...POD }, { key: "k-1", actor: BOB });
  assert.equal(bob.kind, "done");
  assert.equal(t.audit.entries.filter(({ action }) => action === "cordon").length, 2);
});

Deno.test("If-Match names the flags that the caller saw: 412 when they have changed since", async () => {
  await using t = await setup();
  const seen = t.actions.tagOf("pod") ?? assert.fail();
  await t.act({ kind: "capacity", ...POD, value: 1 });
  const late = await t.act({ kind: "cordon", ...POD }, { ifMatch: seen });
  assert.ok(late.kind === "stale");
  const tag = t.actions.tagOf("pod") ?? assert.fail();
  assert.partialDeepStrictEqual(late.current, { overrides: { capacity: { value: 1 } }, tag });
  // Jobs that come and go are no change of it.
  await t.world.submit(1);
  assert.equal(t.actions.tagOf("pod"), tag);
  const ifMatch = `"x", W/${tag}`;
  assert.equal((await t.act({ kind: "cordon", ...POD }, { ifMatch })).kind, "done");
  assert.equal(t.actions.tagOf("gitea-task-99"), null);
});

Deno.test("act() while NATS is away does nothing, says so, and does nothing later either", async () => {
  await using t = await setup();
  t.store.faults.away = true;
  const answer = await t.act({ kind: "cordon", ...POD }, { key: "k" });
  assert.equal(answer.kind, "unavailable");
  t.store.faults.away = false;
  await t.world.clock.advance(60_000);
  assert.equal(t.engine.flags("pod").cordon, null);
  assert.equal((await t.act({ kind: "cordon", ...POD })).kind, "done");
});

Deno.test("step-down is done and told before this leader stops, once", async () => {
  await using world = await createWorld({ capacity: 2 });
  const controller = await world.start();
  const told: string[] = [];
  const operating = operate(world, controller.engine, { stepDown: (detail) => told.push(detail) });
  world.onEnd(() => operating[Symbol.asyncDispose]());
  const { state } = done(await operating.act({ kind: "step-down" }, { key: "k" }));
  assert.deepEqual([state, told], ["done", []]);
  assert.deepEqual(operating.audit.entries.map(({ action, target }) => [action, target]), [
    ["step-down", "leader"],
  ]);
  done(await operating.act({ kind: "step-down" }, { key: "k" }));
  await world.clock.advance(1_000);
  assert.deepEqual(told, ["stepped down by alice: a node is replaced"]);
});

const BOB = { name: "bob", role: "operator" } as const;
const call = { signal: new AbortController().signal };
