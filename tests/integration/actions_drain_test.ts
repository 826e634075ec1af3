import assert from "node:assert/strict";
import type { Action } from "../../controller/actions/action_kinds.ts";
import type { ActionOutcome } from "../../controller/actions/actions.ts";
import { type Controller, createWorld, type World } from "../support/engine_world.ts";
import { operate, type OperateOptions } from "../support/operating.ts";

const DRAIN: Action = { kind: "drain", backend: "pod", hold: false, deadline: null };

function begin(world: World, controller: Controller, options: OperateOptions = {}) {
  const operating = operate(world, controller.engine, {
    capacity: 10,
    guard() {
      if (controller.dead) throw new Error("This controller must not act any more");
    },
    ...options,
  });
  world.onEnd(() => operating[Symbol.asyncDispose]());
  return operating;
}

/** 10 jobs that run and 5 that are stored. */
async function busy(runMs = 60_000) {
  await using stack = new AsyncDisposableStack();
  const world = stack.use(await createWorld({ capacity: 10 }));
  world.plan = () => ({ runMs });
  const controller = await world.start();
  for (let task = 1; task <= 15; task++) await world.submit(task);
  await world.until(
    "10 to run",
    () => controller.engine.ledger.inState("pod", "running").size === 10,
  );
  const operating = begin(world, controller);
  const owned = stack.move();
  return { world, controller, operating, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

function done(outcome: ActionOutcome) {
  assert.ok(outcome.kind === "done", JSON.stringify(outcome));
  return outcome.operation;
}

Deno.test("drain waits for the 10 that run and the 5 that are stored, and is done when nothing is left", async () => {
  await using t = await busy();
  const { world, operating, controller } = t;
  const begun = done(await operating.act(DRAIN));
  assert.deepEqual([begun.state, begun.progress], ["running", { done: 0, total: 15 }]);
  const now = () => operating.operations.get(begun.id) ?? assert.fail();
  await world.until("the first to end", () => now().progress.done > 0, 120_000);
  // What is shown is what the ledger says, each time.
  const left = 15 - now().progress.done;
  const live = [...controller.engine.ledger.entries()].filter((e) => e.state.kind !== "cleaned");
  assert.equal(left, live.length);
  await world.until("the end", () => now().state === "done", 300_000);
  assert.deepEqual(now().progress, { done: 15, total: 15 });
  assert.equal(world.runs.size, 15);
  // It stays drained until somebody resumes it.
  await world.submit(16);
  assert.ok(controller.engine.flags("pod").drain !== null);
  done(await operating.act({ kind: "resume", backend: "pod" }));
  assert.equal(now().state, "done");
  await world.cleaned(16, 120_000);
  world.assertClean();
});

Deno.test("drain with hold keeps the stored ones, which a resume lets go on", async () => {
  await using t = await busy();
  const { world, operating, controller } = t;
  const begun = done(
    await operating.act({ kind: "drain", backend: "pod", hold: true, deadline: null }),
  );
  assert.equal(begun.progress.total, 10);
  const now = () => operating.operations.get(begun.id) ?? assert.fail();
  await world.until("the end", () => now().state === "done", 200_000);
  const stored = [...controller.engine.ledger.inState("pod", "stored")];
  assert.equal(stored.length, 5);
  assert.ok(stored.every(({ reason }) => reason?.code === "backend_cordoned"));
  assert.equal(world.runs.size, 10);
  done(await operating.act({ kind: "resume", backend: "pod" }));
  for (let task = 1; task <= 15; task++) await world.cleaned(task, 200_000);
  world.assertClean();
});

Deno.test("undo at half time puts back what was before, the cordon of another, too", async () => {
  await using t = await busy();
  const { world, operating, controller } = t;
  const bob = { name: "bob", role: "operator" } as const;
  done(await operating.act({ kind: "cordon", backend: "pod" }, { actor: bob }));
  const drain = done(await operating.act(DRAIN));
  await world.until(
    "half of it",
    () => (operating.operations.get(drain.id)?.progress.done ?? 0) >= 5,
    120_000,
  );
  const before = operating.refreshes();
  const undo = done(await operating.act({ kind: "undo", operation: drain.id }));
  assert.deepEqual([undo.state, undo.action, undo.target], ["done", "undo", "pod"]);
  assert.ok(operating.refreshes() > before);
  assert.equal(operating.operations.get(drain.id)?.state, "undone");
  assert.equal(controller.engine.flags("pod").drain, null);
  assert.equal(controller.engine.flags("pod").cordon?.by, "bob");
  const again = await operating.act({ kind: "undo", operation: drain.id });
  assert.equal(again.kind, "conflict");
});

Deno.test("drain is not done while Gitea may still hand out, nor while a late task comes", async () => {
  await using world = await createWorld({ capacity: 10 });
  const controller = await world.start();
  const operating = begin(world, controller);
  operating.offered.add("pod");
  const drain = done(await operating.act(DRAIN));
  const state = () => operating.operations.get(drain.id)?.state;
  await world.clock.advance(20_000);
  assert.equal(state(), "running");
  await world.submit(1);
  operating.offered.delete("pod");
  await world.clock.advance(1_000);
  assert.equal(state(), "running");
  await world.until("the end", () => state() === "done");
  assert.deepEqual(operating.operations.get(drain.id)?.progress, { done: 1, total: 1 });
  world.assertClean();
});

Deno.test("a deadline that passes is said, in the audit, too, and nothing is destroyed", async () => {
  await using t = await busy(120_000);
  const { world, operating } = t;
  const deadline = { kind: "within", ms: 30_000 } as const;
  const drain = done(await operating.act({ kind: "drain", backend: "pod", hold: false, deadline }));
  const now = () => operating.operations.get(drain.id) ?? assert.fail();
  await world.clock.advance(29_000);
  assert.equal(now().error, null);
  await world.clock.advance(2_000);
  assert.match(now().error ?? "", /^The deadline is over and 15 jobs are left/);
  assert.equal(now().state, "running");
  assert.deepEqual(
    operating.audit.entries.map(({ action, result }) => [action, result]),
    [["drain", "done"], ["drain", "failed"]],
  );
  await world.until("the end", () => now().state === "done", 400_000);
  assert.deepEqual([now().error, world.runs.size], [null, 15]);
  assert.ok([...world.runs.values()].every((runs) => runs === 1));
  world.assertClean();
});

Deno.test("a drain goes on after the controller was killed in the middle of it, with its progress", async () => {
  await using t = await busy();
  const { world, operating, controller } = t;
  const drain = done(await operating.act(DRAIN));
  await world.until(
    "half of it",
    () => (operating.operations.get(drain.id)?.progress.done ?? 0) >= 7,
    120_000,
  );
  controller.kill();
  await operating[Symbol.asyncDispose]();
  const second = await world.start();
  const next = begin(world, second, { store: operating.store, audit: operating.audit });
  const { signal } = new AbortController();
  const started = next.actions.start(signal);
  await world.clock.advance(1_000);
  await started;
  assert.equal(second.engine.flags("pod").drain?.operation, drain.id);
  const now = () => next.operations.get(drain.id) ?? assert.fail();
  await world.clock.advance(2_000);
  const live = [...second.engine.ledger.entries()].filter((e) => e.state.kind !== "cleaned");
  assert.deepEqual(now().progress, { done: 15 - live.length, total: 15 });
  await world.until("the end", () => now().state === "done", 300_000);
  assert.deepEqual(now().progress, { done: 15, total: 15 });
  world.assertClean();
});

Deno.test("a drain is not done before its backend is recovered, though nothing is known of it", async () => {
  await using t = await busy();
  const { world, operating, controller } = t;
  const drain = done(await operating.act(DRAIN));
  controller.kill();
  await operating[Symbol.asyncDispose]();
  world.pod.faults.failing.set("list", "unavailable");
  const second = await world.start();
  const next = begin(world, second, { store: operating.store, audit: operating.audit });
  const started = next.actions.start(new AbortController().signal);
  await world.clock.advance(20_000);
  await started;
  const now = () => next.operations.get(drain.id) ?? assert.fail();
  assert.deepEqual([now().state, now().progress], ["running", { done: 0, total: 15 }]);
  world.pod.faults.failing.clear();
  await world.until("the end", () => now().state === "done", 400_000);
  world.assertClean();
});

Deno.test("an operation that was cut short is not carried out over a later one", async () => {
  await using t = await busy();
  const { world, operating, controller } = t;
  const cordon = done(await operating.act({ kind: "cordon", backend: "pod" }));
  const later = operating.operations.get(cordon.id) ?? assert.fail();
  controller.kill();
  await operating[Symbol.asyncDispose]();
  const old = {
    ...later,
    id: "op-old",
    action: { kind: "resume", backend: "pod" } as const,
    state: "running",
    endedAt: null,
    startedAt: later.startedAt - 1,
  } as const;
  await operating.store.create(old, { signal: new AbortController().signal });
  const second = await world.start();
  const next = begin(world, second, { store: operating.store, audit: operating.audit });
  const started = next.actions.start(new AbortController().signal);
  await world.clock.advance(1_000);
  await started;
  assert.notEqual(second.engine.flags("pod").cordon, null);
  const { state, error } = next.operations.get("op-old") ?? assert.fail();
  assert.deepEqual([state, error], [
    "failed",
    `A later operation, "${cordon.id}", has changed "pod"`,
  ]);
  assert.deepEqual(next.audit.entries.map(({ action, result }) => `${action} ${result}`), [
    "cordon done",
    "resume failed",
  ]);
});

for (const step of ["written", "begun"] as const) {
  Deno.test(`an undo that was cut short after it was ${step} is carried out by the next leader`, async () => {
    await using t = await busy();
    const { world, operating, controller } = t;
    const drain = done(await operating.act(DRAIN));
    // As the killed process has left it.
    const left = operating.operations.get(drain.id) ?? assert.fail();
    const undo = {
      ...left,
      id: "op-undo",
      action: { kind: "undo", operation: drain.id } as const,
      startedAt: left.startedAt + 1,
    };
    controller.kill();
    await operating[Symbol.asyncDispose]();
    await operating.store.create(undo, { signal: new AbortController().signal });
    if (step === "written") {
      const call = { signal: new AbortController().signal };
      const stored = await world.store.flags.read("pod", call);
      const flags = { ...stored.flags, drain: null };
      await world.store.flags.write("pod", { ...stored, flags, operation: "op-undo" }, call);
    }
    const second = await world.start();
    const next = begin(world, second, { store: operating.store, audit: operating.audit });
    const started = next.actions.start(new AbortController().signal);
    await world.clock.advance(1_000);
    await started;
    assert.equal(second.engine.flags("pod").drain, null);
    assert.equal(next.operations.get("op-undo")?.state, "done");
    assert.equal(next.operations.get(drain.id)?.state, "undone");
    for (let task = 1; task <= 15; task++) await world.cleaned(task, 300_000);
    world.assertClean();
  });
}

Deno.test("a changed configuration wins over an override at the next start, and the audit says so", async () => {
  await using world = await createWorld({ capacity: 10 });
  const first = await world.start();
  const operating = begin(world, first);
  done(await operating.act({ kind: "capacity", backend: "pod", value: 3 }));
  done(await operating.act({ kind: "label", backend: "vm", value: "vm-dev" }));
  first.kill();
  await operating[Symbol.asyncDispose]();
  const kept = { store: operating.store, audit: operating.audit };
  const restart = async (options: OperateOptions) => {
    const controller = await world.start();
    const next = begin(world, controller, { ...kept, ...options });
    const started = next.actions.start(new AbortController().signal);
    await world.clock.advance(1_000);
    await started;
    const { capacity } = controller.engine.flags("pod");
    const { label } = controller.engine.flags("vm");
    controller.kill();
    await next[Symbol.asyncDispose]();
    return [capacity?.value, label?.value];
  };
  assert.deepEqual(await restart({}), [3, "vm-dev"], "the same configuration changes nothing");
  assert.equal(operating.audit.entries.length, 2);
  assert.deepEqual(await restart({ capacity: 8 }), [undefined, "vm-dev"]);
  assert.deepEqual(await restart({ capacity: 8, vmLabel: "vm-dev" }), [undefined, undefined]);
  const said = operating.audit.entries.slice(2);
  assert.deepEqual(
    said.map(({ actor, action, target, before, after }) => [actor, action, target, before, after]),
    [
      ["configuration", "capacity", "pod", { capacity: 3 }, { capacity: 8 }],
      ["configuration", "label", "vm", { label: "vm-dev" }, { label: "vm-dev" }],
    ],
  );
  assert.match(said[0]?.note ?? "", /^POD_CAPACITY was 10 when it was overridden and is 8 now/);
});
