import assert from "node:assert/strict";
import { GiteaError } from "../../controller/gitea.ts";
import { QueueError } from "../../controller/queue.ts";
import { Result } from "../../proto/gen/runner/v1/messages_pb.ts";
import { fc } from "../support/property.ts";
import { type Fate, FATES } from "../support/fake_executor.ts";
import { createWorld, taskOf, type World } from "../support/engine_world.ts";
import type { FakeMethod } from "../fakes/backend.ts";

const CAPACITY = 2;
const METHODS: readonly FakeMethod[] = [
  "find",
  "create",
  "bindIdentity",
  "markTerminal",
  "list",
  "delete",
];

/** One thing that happens to the world. */
type Step =
  | { readonly kind: "submit" | "duplicate" | "cancel"; readonly task: number }
  | { readonly kind: "end" | "vanish"; readonly nth: number }
  | { readonly kind: "queue_away" | "store_away" | "gitea_away" | "mute"; readonly on: boolean }
  | {
    readonly kind: "backend";
    readonly method: FakeMethod;
    readonly code: "refused" | "unavailable";
  }
  | { readonly kind: "backend_well" | "lose_create" | "lose_write" | "lose_task" | "restart" }
  | { readonly kind: "hold_deletes"; readonly on: boolean }
  | { readonly kind: "crash_after"; readonly calls: number };

const task = fc.integer({ min: 1, max: 5 });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("submit" as const), task }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constantFrom("duplicate" as const, "cancel"), task }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constantFrom("end" as const, "vanish"), nth: fc.nat(3) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom("queue_away" as const, "store_away", "gitea_away", "mute"),
      on: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("backend" as const),
      method: fc.constantFrom(...METHODS),
      code: fc.constantFrom("refused" as const, "unavailable"),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constantFrom(
        "backend_well" as const,
        "lose_create",
        "lose_write",
        "lose_task",
        "restart",
      ),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("hold_deletes" as const), on: fc.boolean() }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant("crash_after" as const), calls: fc.nat(60) }),
  },
);
const script = fc.array(fc.tuple(step, fc.integer({ min: 0, max: 12_000 })), { maxLength: 25 });
const fates = fc.array(fc.constantFrom<Fate>("well", "well", "well", ...FATES), { minLength: 1 });

const TIMES = {
  claimTimeoutMs: 20_000,
  maxWaitMs: 300_000,
  lifecycle: { listMs: 5_000, tickMs: 1_000, silenceMs: 10_000, lingerMs: 10_000, deafMs: 20_000 },
  delays: {
    capacityWaitMs: 1_000,
    backendRetryMs: 3_000,
    notReadyMs: 1_000,
    claimRetryMs: 1_000,
    parkMs: 10_000,
    maxFailures: 3,
  },
};

/** Lets a script happen, puts everything right, and waits for the end of every task. */
async function live(steps: readonly (readonly [Step, number])[], plans: readonly Fate[]) {
  await using world = await createWorld({ capacity: CAPACITY, engine: TIMES });
  let made = 0;
  world.plan = () => ({ fate: plans[made++ % plans.length] ?? "well", runMs: 2_000 });
  let controller = await world.start();
  const restart = async () => {
    controller.kill();
    controller = await world.start();
  };
  for (const [happens, pauseMs] of steps) {
    await happen(world, happens, { controller, restart });
    await world.clock.advance(pauseMs);
    if (controller.dead) await restart();
  }
  controller.killAfter(Infinity);
  putRight(world);
  await world.until("recovery", () => controller.engine.ready());
  const ended = () =>
    [...world.gitea.tasks.values()].every(({ result }) => result !== Result.UNSPECIFIED);
  const quiet = () => world.queue.stored().length + world.store.tasks.size === 0;
  await world.until("the end of all", () => ended() && quiet(), 900_000);
  await world.until("no executor", () => world.pod.executors.size === 0, 60_000);
  await world.clock.advance(6_000);
  world.assertClean();
  assert.ok(world.pod.peak <= CAPACITY, `${world.pod.peak} executors at once`);
  assert.equal(controller.engine.pools.pod.free(), CAPACITY);
  assert.equal(controller.fenced, null);
}

async function happen(
  world: World,
  happens: Step,
  { controller, restart }: {
    readonly controller: Awaited<ReturnType<World["start"]>>;
    readonly restart: () => Promise<void>;
  },
): Promise<void> {
  const { pod, queue, store, gitea } = world;
  switch (happens.kind) {
    case "submit":
      if (!queue.faults.away && !gitea.tasks.has(BigInt(happens.task))) {
        await world.submit(happens.task);
      }
      return;
    case "duplicate":
      if (queue.faults.away || !gitea.tasks.has(BigInt(happens.task))) return;
      queue.forgetIds();
      return await world.publish(happens.task, (await world.seal(taskOf(happens.task))).data);
    case "cancel":
      if (gitea.tasks.get(BigInt(happens.task))?.result === Result.UNSPECIFIED) {
        gitea.cancel(BigInt(happens.task));
      }
      return;
    case "end":
    case "vanish": {
      const name = [...pod.executors.keys()][happens.nth];
      if (name === undefined) return;
      return happens.kind === "end" ? pod.end(name) : pod.vanish(name);
    }
    case "queue_away":
      queue.faults.away = happens.on;
      return queue.wake();
    case "store_away":
      store.faults.away = happens.on;
      return;
    case "gitea_away":
      gitea.down = happens.on ? new GiteaError("unavailable", "Ask Gitea: it is away") : null;
      return;
    case "mute":
      pod.faults.muteWatch = happens.on;
      return;
    case "backend":
      pod.faults.failing.set(happens.method, happens.code);
      return;
    case "backend_well":
      pod.faults.failing.clear();
      return;
    case "lose_create":
      pod.faults.loseNextAnswer = true;
      return;
    case "lose_write":
      store.faults.afterWrite = () => {
        store.faults.afterWrite = null;
        throw new QueueError("timeout", "Write record: the answer was lost");
      };
      return;
    case "lose_task":
      controller.facade.loseAnswers++;
      return;
    case "hold_deletes":
      pod.faults.holdDeletes = happens.on;
      return;
    case "restart":
      return await restart();
    case "crash_after":
      return controller.killAfter(happens.calls);
    default:
      return happens satisfies never;
  }
}

function putRight(world: World): void {
  const { pod, queue, store, gitea } = world;
  queue.faults.away = false;
  queue.wake();
  store.faults.away = false;
  store.faults.afterWrite = null;
  gitea.down = null;
  pod.faults.failing.clear();
  pod.faults.loseNextAnswer = false;
  pod.faults.muteWatch = false;
  pod.faults.holdDeletes = false;
  world.plan = () => ({});
}

Deno.test("engine ends every task once and leaves nothing behind, whatever happens", async () => {
  await fc.assert(fc.asyncProperty(script, fates, live), { numRuns: RUNS });
});

/** More are run by hand: `GDR_ENGINE_RUNS=2000 deno test -A <this file>`. */
const RUNS = Number(Deno.env.get("GDR_ENGINE_RUNS") ?? 60);
