import assert from "node:assert/strict";
import type { Action } from "../../controller/actions/action_kinds.ts";
import { Result } from "../../proto/gen/runner/v1/messages_pb.ts";
import { type Controller, createWorld, type World } from "../support/engine_world.ts";
import { mortal } from "../support/mortal.ts";
import { operate, type Operating } from "../support/operating.ts";
import { createFakeAudit, createFakeOperationStore } from "../fakes/operations.ts";
import { fc } from "../support/property.ts";

const JOBS = 6;

/** One thing that happens: an action, asked with a key or again with the last one, or time that goes by. */
type Step =
  | { readonly kind: "act"; readonly action: Action; readonly again: boolean }
  | { readonly kind: "wait"; readonly ms: number }
  /** The controller is killed after so many more calls to the stores of flags and operations. */
  | { readonly kind: "kill"; readonly calls: number };

const job = (world: World, task: number) => world.id(task);

function steps(world: World): fc.Arbitrary<Step[]> {
  const backend = "pod" as const;
  const id = fc.integer({ min: 1, max: JOBS }).map((task) => job(world, task));
  const action: fc.Arbitrary<Action> = fc.oneof(
    fc.constant({ kind: "cordon", backend } as const),
    fc.boolean().map((hold) => ({ kind: "drain", backend, hold, deadline: null }) as const),
    fc.constant({ kind: "resume", backend } as const),
    fc.integer({ min: 0, max: 3 }).map((value) => ({ kind: "capacity", backend, value }) as const),
    id.map((id) => ({ kind: "cancel", id }) as const),
    fc.record({ id, tier: fc.constantFrom("graceful", "forced", "forget") })
      .map(({ id, tier }) => ({ kind: "release", id, tier }) as const),
  );
  return fc.array(
    fc.oneof(
      {
        weight: 6,
        arbitrary: fc.record({ kind: fc.constant("act" as const), action, again: fc.boolean() }),
      },
      {
        weight: 2,
        arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: fc.nat(8_000) }),
      },
      { weight: 2, arbitrary: fc.record({ kind: fc.constant("kill" as const), calls: fc.nat(6) }) },
    ),
    { minLength: 3, maxLength: 14 },
  );
}

/** Plays the steps; a leader that was killed is followed by another. */
async function play(world: World, played: readonly Step[]): Promise<void> {
  const store = createFakeOperationStore();
  const audit = createFakeAudit();
  let left = Infinity;
  let leader: { readonly controller: Controller; readonly operating: Operating } | null = null;
  let keys = 0;

  const lead = async () => {
    const controller = await world.start();
    const alive = () => {
      if (--left < 0 && !controller.dead) controller.kill();
      return !controller.dead;
    };
    const operating = operate(world, controller.engine, {
      store: mortal(store, alive),
      audit,
      flags: mortal(world.store.flags, alive),
      capacity: 2,
      guard() {
        if (controller.dead) throw new Error("This controller must not act any more");
      },
    });
    const started = operating.actions.start(new AbortController().signal).catch((error) => {
      if (!controller.dead) throw error;
    });
    await world.clock.advance(2_000);
    // One that was killed meanwhile tries for ever.
    if (!controller.dead) await started;
    return { controller, operating };
  };
  const alive = async () => {
    while (leader === null || leader.controller.dead) {
      await leader?.operating[Symbol.asyncDispose]();
      left = Infinity;
      leader = await lead();
    }
    return leader;
  };

  for (let task = 1; task <= JOBS; task++) {
    world.gitea.tasks.delete(BigInt(task));
  }
  await alive();
  for (let task = 1; task <= JOBS; task++) await world.submit(task);
  for (const step of played) {
    const { operating } = await alive();
    if (step.kind === "wait") await world.clock.advance(step.ms);
    else if (step.kind === "kill") left = step.calls;
    else {
      if (!step.again) keys++;
      await operating.act(step.action, { key: `key-${keys}` }).catch(() => {});
    }
  }
  left = Infinity;
  const { operating, controller } = await alive();
  await operating.act({ kind: "capacity", backend: "pod", value: 2 });
  await operating.act({ kind: "resume", backend: "pod" });
  // One that ended under an earlier leader is not known to this one.
  const over = () =>
    [...controller.engine.ledger.entries()].every((e) => e.state.kind === "cleaned");
  await world.until("every job to end", () => controller.engine.ready() && over(), 400_000);
  await world.until(
    "every operation to end",
    () => [...store.stored.values()].every(({ operation }) => operation.state !== "running"),
    60_000,
  );
  world.assertClean();

  const { cordon, drain } = controller.engine.flags("pod");
  assert.deepEqual([cordon, drain], [null, null]);
  const stored = await world.store.flags.read("pod", { signal: new AbortController().signal });
  assert.deepEqual(stored.flags, controller.engine.flags("pod"), "memory is what is stored");
  // What was begun has been told of, and by its own word.
  const told = new Map(audit.entries.map((entry) => [entry.id, entry.result]));
  for (const { operation: { id, state, error } } of store.stored.values()) {
    if (state === "failed") assert.ok(error !== null && error !== "", id);
    else assert.equal(told.get(id), "done", `audit of ${id}`);
  }
  // A job that nobody ended has come to its own end.
  const ended = new Set(
    [...store.stored.values()].flatMap(({ operation: { action, state } }) =>
      state === "done" && "id" in action ? [action.id] : []
    ),
  );
  for (let task = 1; task <= JOBS; task++) {
    if (ended.has(job(world, task))) continue;
    assert.equal(world.gitea.tasks.get(BigInt(task))?.result, Result.SUCCESS, `task ${task}`);
  }
  await operating[Symbol.asyncDispose]();
}

Deno.test("whatever operators do and whenever the controller is killed: flags, operations and jobs come to an end", async () => {
  await using sample = await createWorld();
  await fc.assert(
    fc.asyncProperty(steps(sample), async (played) => {
      await using world = await createWorld({ capacity: 2 });
      world.plan = () => ({ runMs: 12_000, obeys: true });
      await play(world, played);
    }),
    { numRuns: 60 },
  );
});
