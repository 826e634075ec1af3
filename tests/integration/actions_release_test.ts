import assert from "node:assert/strict";
import type { ReleaseTier } from "../../controller/actions/action_kinds.ts";
import type { ActionOutcome } from "../../controller/actions/actions.ts";
import { GiteaError } from "../../controller/gitea.ts";
import { Result } from "../../proto/gen/runner/v1/messages_pb.ts";
import {
  type Controller,
  createWorld,
  type World,
  type WorldOptions,
} from "../support/engine_world.ts";
import { executorOf } from "../support/executor_of.ts";
import type { Fate } from "../support/fake_executor.ts";
import { operate, type OperateOptions, type Operating } from "../support/operating.ts";

function begin(world: World, controller: Controller, options: OperateOptions = {}) {
  const operating = operate(world, controller.engine, {
    guard() {
      if (controller.dead) throw new Error("This controller must not act any more");
    },
    ...options,
  });
  world.onEnd(() => operating[Symbol.asyncDispose]());
  return operating;
}

async function setup(options: WorldOptions = { capacity: 1 }) {
  await using stack = new AsyncDisposableStack();
  const world = stack.use(await createWorld(options));
  const controller = await world.start();
  const operating = begin(world, controller);
  const owned = stack.move();
  return { world, controller, operating, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

function done(outcome: ActionOutcome) {
  assert.ok(outcome.kind === "done", JSON.stringify(outcome));
  return outcome.operation;
}

const resultOf = (world: World, task: number) => world.gitea.tasks.get(BigInt(task))?.result;
const rowsOf = (world: World, task: number) => world.gitea.tasks.get(BigInt(task))?.rows ?? [];

const release = (world: World, operating: Operating, tier: ReleaseTier, task = 1) =>
  operating.act({ kind: "release", id: world.id(task), tier }, { note: "its author has left" });

/** Jobs to be given up: how its executor behaves, and until when it is waited for. */
const JOBS: Readonly<Record<string, { readonly fate: Fate; readonly state: string }>> = {
  "one that waits": { fate: "well", state: "stored" },
  "one whose start never comes": { fate: "never_claims", state: "ready" },
  "one that runs": { fate: "well", state: "running" },
};

for (const [name, { fate, state }] of Object.entries(JOBS)) {
  for (const tier of ["graceful", "forced", "forget"] as const) {
    Deno.test(`release (${tier}) of ${name} does what its preview said`, async () => {
      await using t = await setup({ capacity: state === "stored" ? 0 : 1 });
      const { world, controller, operating } = t;
      world.plan = () => ({ fate, runMs: 600_000, obeys: true });
      await world.submit(1);
      const entry = () => controller.engine.ledger.get(world.id(1));
      await world.until(state, () => entry()?.state.kind === state, 30_000);
      const preview = operating.actions.preview(world.id(1), tier) ?? assert.fail();
      assert.equal(preview.refused, null);
      assert.equal(preview.executor.name, state === "stored" ? null : world.executor(1));
      assert.equal(preview.message, state === "running" ? "none" : "removed");
      assert.equal(preview.identity, state === "stored" ? "none" : "deleted_with_executor");
      assert.equal(preview.slot === "none", state === "stored");

      const operation = done(await release(world, operating, tier));
      if (preview.gitea.when === "at_once") {
        await world.until("Gitea's end", () => resultOf(world, 1) !== Result.UNSPECIFIED, 2_000);
        const wanted = preview.gitea.result === "failure" ? Result.FAILURE : Result.CANCELLED;
        assert.equal(resultOf(world, 1), wanted);
      } else assert.equal(preview.gitea.result, null);
      await world.cleaned(1, 60_000);
      assert.equal(
        rowsOf(world, 1).at(-1),
        `gitea-dynamic-runner: ${
          tier === "graceful" ? "cancelled" : "given up"
        } by alice: its author has left`,
      );
      assert.equal(
        resultOf(world, 1),
        tier === "graceful" ? Result.CANCELLED : Result.FAILURE,
      );
      await world.clock.advance(1_000);
      const { state: ended, progress, error } = operating.operations.get(operation.id) ??
        assert.fail();
      assert.deepEqual([ended, progress, error], ["done", { done: 1, total: 1 }, null]);
      const [audited, ...more] = operating.audit.entries;
      assert.deepEqual(more, []);
      assert.deepEqual(
        [audited?.action, audited?.target, audited?.result, audited?.note],
        ["release", world.id(1), "done", "its author has left"],
      );
      world.assertClean();
    });
  }
}

Deno.test("cancel of one whose runner does not listen ends it after two minutes", async () => {
  await using t = await setup();
  const { world, controller, operating } = t;
  world.plan = () => ({ runMs: 600_000 });
  await world.submit(1);
  const kind = () => controller.engine.ledger.get(world.id(1))?.state.kind;
  await world.until("running", () => kind() === "running");
  const operation = done(await operating.act({ kind: "cancel", id: world.id(1) }));
  assert.equal(operation.state, "running");
  await world.clock.advance(110_000);
  assert.equal(kind(), "running");
  const shown = operating.operations.get(operation.id);
  assert.match(shown?.error ?? "", /runner has not ended it/);
  const same = await operating.act({ kind: "cancel", id: world.id(1) });
  assert.match(same.kind === "conflict" ? same.detail : "", /^Wait: operation "op-/);
  await world.cleaned(1, 30_000);
  assert.equal(resultOf(world, 1), Result.CANCELLED);
  assert.match(rowsOf(world, 1).at(-1) ?? "", /its runner did not end it within 2 minutes$/);
  world.assertClean();
});

Deno.test("release by force waits for its backend; forget gives the slot to the next at once", async () => {
  await using t = await setup();
  const { world, controller, operating } = t;
  world.plan = () => ({ runMs: 3_600_000 });
  await world.submit(1);
  await world.submit(2);
  const kind = (task: number) => controller.engine.ledger.get(world.id(task))?.state.kind;
  await world.until("running", () => kind(1) === "running");
  for (const method of METHODS) world.pod.faults.failing.set(method, "unavailable");
  const forced = done(await release(world, operating, "forced"));
  await world.until("Gitea's end", () => resultOf(world, 1) === Result.FAILURE, 5_000);
  await world.clock.advance(30_000);
  assert.deepEqual([...controller.engine.pools.pod.holders()], [world.id(1)]);
  assert.match(operating.operations.get(forced.id)?.error ?? "", /has not confirmed that "ci-/);

  const preview = operating.actions.preview(world.id(1), "forget") ?? assert.fail();
  assert.deepEqual([preview.slot, preview.executor.fate, preview.gitea.when], [
    "freed_at_once",
    "deleted_when_possible",
    "ended_already",
  ]);
  const forgotten = done(await release(world, operating, "forget"));
  await world.clock.advance(2_000);
  assert.ok(!controller.engine.pools.pod.holders().has(world.id(1)));
  assert.equal(operating.operations.get(forgotten.id)?.state, "done");
  assert.equal(operating.operations.get(forced.id)?.state, "running");
  assert.notEqual(world.store.tasks.get(taskOf(world, 1))?.value.released, null);
  assert.equal(kind(1), "terminal", "it is remembered");

  world.pod.faults.failing.clear();
  await world.cleaned(1, 60_000);
  await world.clock.advance(1_000);
  assert.equal(operating.operations.get(forced.id)?.state, "done");
  await world.until("the next", () => kind(2) === "running", 60_000);
  done(await release(world, operating, "forced", 2));
  await world.cleaned(2, 60_000);
  world.assertClean();
});

Deno.test("one that was forgotten does not come back at recovery, and is deleted when it is seen", async () => {
  await using t = await setup();
  const { world, controller, operating } = t;
  world.plan = (task) => task === "1" ? { runMs: 3_600_000 } : {};
  await world.submit(1);
  const running = () => controller.engine.ledger.get(world.id(1))?.state.kind === "running";
  await world.until("running", running);
  world.pod.faults.failing.set("delete", "unavailable");
  const { id } = done(await release(world, operating, "forget"));
  await world.until("Gitea's end", () => resultOf(world, 1) === Result.FAILURE, 5_000);
  const ended = () => operating.operations.get(id)?.state === "done";
  await world.until("the operation's end", ended, 5_000);
  controller.kill();
  await operating[Symbol.asyncDispose]();
  const second = await world.start();
  const next = begin(world, second, { store: operating.store, audit: operating.audit });
  const started = next.actions.start(new AbortController().signal);
  await world.clock.advance(2_000);
  await started;
  assert.ok(world.pod.executors.has(world.executor(1)), "it is still there");
  assert.deepEqual([...second.engine.pools.pod.holders()], []);
  assert.equal(second.engine.ledger.get(world.id(1))?.recovered !== null, true);
  await world.submit(2);
  await world.until("the next", () => world.runs.has("2"), 30_000);
  world.pod.faults.failing.clear();
  await world.cleaned(1, 60_000);
  await world.cleaned(2, 60_000);
  assert.equal(world.runs.get("1"), 1);
  world.assertClean();
});

Deno.test("one that was forgotten after its end is deleted at once by the next leader", async () => {
  await using t = await setup();
  const { world, controller, operating } = t;
  world.plan = () => ({ fate: "lingers" });
  await world.submit(1);
  const kind = () => controller.engine.ledger.get(world.id(1))?.state.kind;
  await world.until("its end", () => kind() === "terminal");
  world.pod.faults.failing.set("delete", "unavailable");
  const { id } = done(await release(world, operating, "forget"));
  await world.until("the operation", () => operating.operations.get(id)?.state === "done", 5_000);
  assert.deepEqual([...controller.engine.pools.pod.holders()], []);
  controller.kill();
  await operating[Symbol.asyncDispose]();
  world.pod.faults.failing.clear();
  const second = await world.start();
  await world.clock.advance(2_000);
  assert.deepEqual([...second.engine.pools.pod.holders()], []);
  assert.ok(!world.pod.executors.has(world.executor(1)));
  assert.equal(resultOf(world, 1), Result.SUCCESS, "its end stays as it was");
  world.assertClean();
});

for (const calls of [0, 1, 2, 3, 4, 6]) {
  Deno.test(`release by force goes on with the next leader, killed after ${calls} calls`, async () => {
    await using t = await setup();
    const { world, controller, operating } = t;
    world.plan = () => ({ runMs: 600_000 });
    await world.submit(1);
    const running = () => controller.engine.ledger.get(world.id(1))?.state.kind === "running";
    await world.until("running", running);
    controller.killAfter(calls);
    const operation = done(await release(world, operating, "forced"));
    await world.clock.advance(500);
    controller.kill();
    await operating[Symbol.asyncDispose]();
    const second = await world.start();
    const next = begin(world, second, { store: operating.store, audit: operating.audit });
    const started = next.actions.start(new AbortController().signal);
    await world.clock.advance(1_000);
    await started;
    await world.until("the end", () => resultOf(world, 1) !== Result.UNSPECIFIED, 30_000);
    assert.equal(resultOf(world, 1), Result.FAILURE);
    await world.until(
      "the operation's end",
      () => next.operations.get(operation.id)?.state === "done",
      60_000,
    );
    world.assertClean();
  });
}

Deno.test("release while Gitea is away is told again until it has taken it", async () => {
  await using t = await setup();
  const { world, operating, controller } = t;
  world.plan = () => ({ runMs: 600_000 });
  await world.submit(1);
  const running = () => controller.engine.ledger.get(world.id(1))?.state.kind === "running";
  await world.until("running", running);
  world.gitea.down = new GiteaError("unavailable", "Ask Gitea: it is away");
  const operation = done(await release(world, operating, "forced"));
  await world.clock.advance(20_000);
  assert.match(operating.operations.get(operation.id)?.error ?? "", /Gitea has not taken the end/);
  world.gitea.down = null;
  await world.cleaned(1, 60_000);
  assert.equal(resultOf(world, 1), Result.FAILURE);
  world.assertClean();
});

Deno.test("release refuses what is over, what nobody knows, and what has changed since it was looked at", async () => {
  await using t = await setup();
  const { world, controller, operating } = t;
  world.plan = () => ({ runMs: 10_000 });
  await world.submit(1);
  const preview = operating.actions.preview(world.id(1), "forced") ?? assert.fail();
  const running = () => controller.engine.ledger.get(world.id(1))?.state.kind === "running";
  await world.until("running", running);
  const stale = await operating.act(
    { kind: "release", id: world.id(1), tier: "forced" },
    { ifMatch: preview.tag },
  );
  assert.ok(stale.kind === "stale");
  assert.partialDeepStrictEqual(stale.current, { state: "running" });
  assert.ok(running());
  await world.cleaned(1, 60_000);
  assert.equal((await release(world, operating, "forget")).kind, "conflict");
  assert.equal((await release(world, operating, "forced", 9)).kind, "absent");
  assert.equal(operating.actions.preview(world.id(9), "forced"), undefined);
  assert.deepEqual(operating.audit.entries.map(({ result }) => result), [
    "refused",
    "refused",
    "refused",
  ]);
  world.assertClean();
});

const METHODS = ["find", "create", "bindIdentity", "markTerminal", "list", "delete"] as const;

function taskOf(world: World, task: number) {
  return [...world.store.tasks.keys()].find((id) => id === String(task)) ??
    assert.fail(`no record of ${world.id(task)}`);
}

/** An executor of our name and labels that nobody can read any more, in the only slot. */
async function unknown() {
  await using stack = new AsyncDisposableStack();
  const world = stack.use(await createWorld({ capacity: 1 }));
  const name = world.executor(1);
  const uid = "uid-9";
  world.pod.put(executorOf({ name, uid, createdAt: world.clock.now() }));
  const controller = await world.start();
  await world.submit(2);
  await world.clock.advance(5_000);
  assert.equal(controller.engine.pools.pod.unknown(), 1);
  assert.ok(!world.runs.has("2"));
  const operating = begin(world, controller);
  const owned = stack.move();
  return {
    world,
    controller,
    operating,
    act: (tier: "forced" | "forget", given = uid) =>
      operating.act({ kind: "release-executor", backend: "pod", name, uid: given, tier }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

Deno.test("an executor that nobody can account for is deleted, and its slot comes back", async () => {
  await using t = await unknown();
  const { world, operating } = t;
  assert.equal((await t.act("forced", "another-uid")).kind, "absent");
  world.pod.faults.failing.set("delete", "unavailable");
  const { id } = done(await t.act("forced"));
  await world.clock.advance(6_000);
  assert.match(operating.operations.get(id)?.error ?? "", /delete/i);
  assert.equal((await t.act("forced")).kind, "conflict");
  world.pod.faults.failing.clear();
  await world.cleaned(2, 60_000);
  assert.equal(operating.operations.get(id)?.state, "done");
  world.assertClean();
});

Deno.test("one that is forgotten holds no slot, after a restart neither, and is shown until it is gone", async () => {
  await using t = await unknown();
  const { world, operating, controller } = t;
  world.pod.faults.failing.set("delete", "unavailable");
  const { id } = done(await t.act("forget"));
  await world.until("the next", () => world.runs.has("2"), 10_000);
  assert.equal(operating.operations.get(id)?.state, "done");
  const [shown] = controller.engine.strangers("pod");
  assert.equal(shown?.ownership, "forgotten");
  assert.match(shown?.why ?? "", /given up by alice, it holds no slot$/);
  assert.equal((await t.act("forget")).kind, "conflict");
  controller.kill();
  await operating[Symbol.asyncDispose]();
  world.pod.faults.failing.clear();
  const second = await world.start();
  await world.clock.advance(1_000);
  assert.equal(second.engine.pools.pod.unknown(), 0);
  assert.equal(second.engine.strangers("pod").length, 1);
});

for (const kind of ["cancel", "cordon"] as const) {
  Deno.test(`${kind} comes to its end although it was not sure for a moment who leads`, async () => {
    await using t = await setup();
    const { world, controller } = t;
    const { engine } = controller;
    world.plan = () => ({ runMs: 600_000, obeys: true });
    await world.submit(1);
    await world.until("running", () => engine.ledger.get(world.id(1))?.state.kind === "running");
    let sure = kind === "cancel";
    const guard = () => {
      if (!sure) throw new Error("Act as the leader: it is not sure");
    };
    const operating = begin(world, {
      ...controller,
      engine: {
        ...engine,
        release: {
          ...engine.release,
          cancel(id, why) {
            guard();
            engine.release.cancel(id, why);
          },
        },
      },
    }, {
      guard: () => {
        // It is not sure from the moment on in which the operation has been written down.
        if (operating.operations.list().length > 0) guard();
      },
    });
    const action = kind === "cancel"
      ? { kind, id: world.id(1) } as const
      : { kind, backend: "pod" } as const;
    const operation = done(await operating.act(action));
    assert.equal(operation.state, "running");
    sure = false;
    await world.clock.advance(5_000);
    sure = true;
    await world.until(
      "its end",
      () => operating.operations.get(operation.id)?.state === "done",
      30_000,
    );
  });
}
