import assert from "node:assert/strict";
import { GiteaError } from "../../controller/gitea.ts";
import type { Result as Ended } from "../../controller/model/reason.ts";
import { Result } from "../../proto/gen/runner/v1/messages_pb.ts";
import type { Plan } from "../support/fake_executor.ts";
import { FROM_CLAIM, HAPPY, TO_READY } from "../support/engine_events.ts";
import { createWorld, type World } from "../support/engine_world.ts";

const phases: readonly { readonly at: string; readonly prepare: (world: World) => void }[] = [
  {
    at: "capacity_acquired",
    prepare: (world) => world.pod.faults.failing.set("find", "unavailable"),
  },
  {
    at: "backend_retry",
    prepare: (world) => world.pod.faults.failing.set("create", "unavailable"),
  },
  { at: "backend_pending", prepare: (world) => void (world.pod.faults.withholdTarget = true) },
  { at: "backend_ready", prepare: (world) => void (world.plan = () => ({ fate: "never_claims" })) },
  { at: "parked", prepare: (world) => void (world.plan = () => ({ fate: "ends_before_claim" })) },
];
for (const { at, prepare } of phases) {
  Deno.test(`engine ends a job that is cancelled at "${at}", and leaves no executor`, async () => {
    await using world = await createWorld({ capacity: 1 });
    prepare(world);
    const { engine } = await world.start();
    await world.submit(1);
    await world.until(at, () => world.events(1).includes(at), 120_000);
    const before = world.events(1).length;
    world.gitea.cancel(1n);
    // Executors in the making are heard within 10 s, parked ones within a third of the zombie time-out.
    await world.until(
      "the cancel",
      () => world.events(1).includes("cancelled"),
      at === "parked" ? 201_000 : 13_000,
    );
    world.pod.faults.failing.clear();
    await world.cleaned(1);
    const told = world.events(1).slice(before).filter((e) =>
      e === "cancelled" || e === "terminal" || e === "cleaned"
    );
    assert.deepEqual(told, ["cancelled", "terminal", "cleaned"]);
    assert.equal(world.gitea.tasks.get(1n)?.result, Result.CANCELLED);
    assert.equal(engine.ledger.get(world.id(1))?.reason?.code, "cancelled");
    assert.equal(engine.pools.pod.free(), 1);
    assert.equal(world.runs.size, 0);
    world.assertClean();
  });
}

Deno.test("engine hears of the cancel of a job that waits for its slot, soon for the next ones", async () => {
  await using world = await createWorld({ capacity: 1 });
  world.plan = () => ({ runMs: 600_000 });
  await world.start();
  for (const task of [1, 2, 3]) await world.submit(task);
  await world.until("running", () => world.events(1).includes("running"));
  world.gitea.cancel(2n);
  world.gitea.cancel(3n);
  const from = world.clock.now();
  await world.cleaned(2, 13_000);
  assert.ok(world.clock.now() - from <= 12_000);
  assert.deepEqual(world.events(2), ["cancelled", "terminal", "cleaned"]);
  assert.deepEqual(world.queue.stored(), [world.id(3)]);
  await world.cleaned(3, 201_000);
  assert.deepEqual(world.queue.stored(), []);
});

Deno.test("engine asks Gitea just before it makes an executor, so that none is made for a cancelled job", async () => {
  await using world = await createWorld({ capacity: 1 });
  world.plan = () => ({ runMs: 8_000 });
  await world.start();
  await world.submit(1);
  await world.submit(2);
  await world.until("running", () => world.events(1).includes("running"));
  await world.clock.advance(7_000);
  world.gitea.cancel(2n);
  await world.cleaned(2);
  assert.ok(!world.events(2).includes("executor_created"), world.events(2).join());
  world.assertClean();
});

Deno.test("engine hands no job over that was cancelled a moment before the claim", async () => {
  await using world = await createWorld();
  await world.start();
  world.onJournal = ({ event }) => {
    if (event === "backend_ready") world.gitea.cancel(1n);
  };
  await world.submit(1);
  await world.cleaned(1);
  assert.deepEqual(world.events(1), [...TO_READY, "cancelled", "terminal", "cleaned"]);
  assert.equal(world.handed.size, 0);
  world.assertClean();
});

interface Loss {
  readonly fate: Plan["fate"];
  /** Seconds until Gitea is told. */
  readonly within: readonly [number, number];
  readonly says: RegExp;
}

/** In the words of the backend in memory, and of Pods. */
const KILLED = /ended without a result: (exit code 137|killed by SIGKILL)/;
const losses: readonly Loss[] = [
  { fate: "dies_holding", within: [60, 70], says: KILLED },
  { fate: "dies_running", within: [60, 70], says: KILLED },
  { fate: "vanishes_running", within: [60, 70], says: /vanished without a result/ },
  { fate: "gives_up", within: [0, 5], says: /without a result \(exit code 1: the test's exit\)/ },
];
for (const { fate, within: [least, most], says } of losses) {
  Deno.test(`engine fails the job of an executor that ${fate.replace("_", " ")}, and never runs it again`, async () => {
    await using world = await createWorld({ capacity: 1 });
    world.plan = (task) => task === "1" ? { fate } : {};
    await world.start();
    // The facade has been up for long.
    await world.clock.advance(120_000);
    await world.submit(1);
    await world.submit(2);
    await world.until("the hand-over", () => world.events(1).includes("runner_claimed"));
    const from = world.clock.now();
    await world.until("the loss", () => world.events(1).includes("lost"), 120_000);
    const seconds = (world.clock.now() - from) / 1_000;
    assert.ok(seconds >= least && seconds <= most, `${seconds} s`);
    await world.cleaned(1);
    await world.cleaned(2);
    assert.equal(world.gitea.tasks.get(1n)?.result, Result.FAILURE);
    assert.match(world.gitea.tasks.get(1n)?.rows.at(-1) ?? "", says);
    assert.equal(world.gitea.tasks.get(1n)?.sealed, true);
    assert.equal(world.events(1).filter((e) => e === "executor_created").length, 1);
    assert.equal(world.pod.peak, 1);
    assert.deepEqual(world.events(2), HAPPY);
    world.assertClean();
  });
}

Deno.test("engine believes a lost executor's last report, though Gitea had not taken it", async () => {
  await using world = await createWorld({ capacity: 1 });
  world.plan = () => ({ fate: "dies_reporting", runMs: 20_000 });
  await world.start();
  // The facade has been up for long.
  await world.clock.advance(120_000);
  await world.submit(1);
  await world.until("the job", () => world.events(1).includes("running"));
  world.gitea.down = new GiteaError("unavailable", "Update task: the test's outage");
  await world.until("the loss", () => world.events(1).includes("lost"), 120_000);
  await world.clock.advance(30_000);
  assert.equal(world.gitea.tasks.get(1n)?.result, Result.UNSPECIFIED);
  world.gitea.down = null;
  await world.cleaned(1);
  const task = world.gitea.tasks.get(1n);
  assert.equal(task?.result, Result.SUCCESS);
  assert.deepEqual(task?.state?.steps.map(({ result }) => result), [
    Result.SUCCESS,
    Result.SUCCESS,
  ]);
  assert.equal(world.events(1).filter((e) => e === "executor_created").length, 1);
  world.assertClean();
});

Deno.test("engine deletes the executor of a cancelled job two minutes after its runner's last word", async () => {
  await using world = await createWorld();
  world.plan = () => ({ runMs: 3_600_000, deaf: true });
  await world.start();
  await world.submit(1);
  await world.until("running", () => world.events(1).includes("running"));
  world.gitea.cancel(1n);
  await world.clock.advance(110_000);
  assert.ok(!world.events(1).includes("cancelled"));
  await world.until("the end", () => world.events(1).includes("cancelled"), 30_000);
  await world.cleaned(1, 120_000);
  assert.deepEqual(world.events(1).slice(-3), ["cancelled", "terminal", "cleaned"]);
  world.assertClean();
});

Deno.test("engine leaves a cancelled job alone whose runner still reports", async () => {
  await using world = await createWorld();
  // Steps that run in any case may take their time.
  world.plan = () => ({ runMs: 600_000, reports: true });
  const { engine } = await world.start();
  await world.submit(1);
  await world.until("running", () => world.events(1).includes("running"));
  world.gitea.cancel(1n);
  await world.clock.advance(400_000);
  assert.equal(engine.ledger.get(world.id(1))?.state.kind, "running");
  await world.cleaned(1, 400_000);
  world.assertClean();
});

Deno.test("engine sends all steps with the end of a lost job: finished ones as they were, others cancelled", async () => {
  await using world = await createWorld();
  world.plan = () => ({ fate: "gives_up" });
  await world.start();
  await world.submit(1);
  await world.cleaned(1);
  assert.deepEqual(
    world.gitea.tasks.get(1n)?.state?.steps.map(({ id, result }) => [id, result]),
    [[0n, Result.CANCELLED], [1n, Result.CANCELLED]],
  );
});

Deno.test("engine needs both proofs of a loss: an executor that still speaks is not lost", async () => {
  await using world = await createWorld();
  world.plan = () => ({ runMs: 200_000 });
  const { engine } = await world.start();
  await world.submit(1);
  await world.until("running", () => world.events(1).includes("running"));
  await world.clock.advance(100_000);
  world.pod.faults.muteWatch = true;
  // The backend is wrong about it; its gate goes on with its heartbeats.
  engine.ledger.dispatch(world.id(1), { kind: "executor_ended" });
  await world.clock.advance(80_000);
  assert.ok(!world.events(1).includes("lost"));
  await world.cleaned(1);
  assert.equal(world.gitea.tasks.get(1n)?.result, Result.SUCCESS);
});

Deno.test("engine counts silence only while the facade is there to be spoken to", async () => {
  await using world = await createWorld();
  world.plan = () => ({ fate: "dies_running" });
  const first = await world.start();
  await world.submit(1);
  await world.until("running", () => world.events(1).includes("running"));
  await world.clock.advance(2_000);
  first.kill();
  await world.clock.advance(300_000);
  await world.start();
  await world.clock.advance(55_000);
  assert.ok(!world.events(1).includes("lost"));
  await world.until("the loss", () => world.events(1).includes("lost"), 10_000);
  await world.cleaned(1);
  world.assertClean();
});

Deno.test("engine keeps the order of the journal when a job ends before its message is acknowledged", async () => {
  await using world = await createWorld({ capacity: 1 });
  await world.start();
  world.onJournal = ({ event }) => {
    if (event === "runner_claimed") world.queue.faults.away = true;
  };
  await world.submit(1);
  await world.until("the end at Gitea", () => world.gitea.tasks.get(1n)?.result === Result.SUCCESS);
  await world.clock.advance(5_000);
  assert.equal(world.events(1).at(-1), "runner_claimed");
  world.queue.faults.away = false;
  world.queue.wake();
  await world.cleaned(1);
  assert.deepEqual(world.events(1), HAPPY);
  world.assertClean();
});

Deno.test("engine frees the slot when the executor has ended, and marks for as long as it takes", async () => {
  await using world = await createWorld({ capacity: 1 });
  const { engine } = await world.start();
  world.pod.faults.failing.set("markTerminal", "unavailable");
  await world.submit(1);
  await world.submit(2);
  await world.until("the next", () => world.events(2).includes("terminal"));
  assert.equal(engine.ledger.get(world.id(1))?.state.kind, "terminal");
  assert.ok(!world.events(1).includes("marked"));
  assert.equal(
    world.pod.executors.get(world.executor(1))?.ended?.exitCode,
    0,
    "not deleted unmarked",
  );
  world.pod.faults.failing.clear();
  await world.cleaned(1);
  await world.cleaned(2);
  assert.deepEqual(world.events(1), HAPPY);
  assert.equal(world.pod.peak, 1);
  world.assertClean();
});

Deno.test("engine deletes an executor that lives on after its job, and keeps its slot until it is gone", async () => {
  await using world = await createWorld({ capacity: 1 });
  world.plan = (task) => task === "1" ? { fate: "lingers" } : {};
  const { engine } = await world.start();
  await world.submit(1);
  await world.submit(2);
  await world.until("marked", () => world.events(1).includes("marked"));
  await world.clock.advance(55_000);
  assert.equal(world.pod.executors.size, 1);
  assert.deepEqual(world.events(2), []);
  world.pod.faults.holdDeletes = true;
  const before = world.pod.calls.length;
  await world.clock.advance(30_000);
  const asked = world.pod.calls.slice(before).filter(({ name }) => name !== null);
  assert.equal(asked.filter(({ method }) => method === "delete").length, 2, "once in 15 s");
  assert.ok(asked.length <= 15, `asked ${asked.length} times for one executor in 30 s`);
  assert.equal(world.pod.executors.get(world.executor(1))?.terminating, true);
  assert.equal(engine.pools.pod.free(), 0, "it is not gone yet");
  world.pod.faults.holdDeletes = false;
  await world.cleaned(2);
  assert.equal(world.pod.peak, 1);
  assert.deepEqual(world.events(1), HAPPY);
  world.assertClean();
});

Deno.test("engine needs no goodbye: the backend's word ends the job", async () => {
  await using world = await createWorld({ capacity: 1 });
  world.plan = () => ({ fate: "no_goodbye" });
  await world.start();
  await world.submit(1);
  await world.submit(2);
  await world.cleaned(2);
  assert.deepEqual(world.events(1), HAPPY);
  world.assertClean();
});

Deno.test("engine does not explain the end of an executor by the goodbye of the one before", async () => {
  await using world = await createWorld({ capacity: 1 });
  world.plan = (_, attempt) => ({ fate: attempt === 1 ? "never_claims" : "gives_up" });
  const { engine } = await world.start();
  await world.submit(1);
  await world.until("ready", () => world.events(1).includes("backend_ready"));
  engine.events.terminating(world.id(1), "evicted: the node is full");
  world.pod.end(world.executor(1));
  await world.until("the loss", () => world.events(1).includes("lost"), 120_000);
  await world.cleaned(1);
  const last = world.gitea.tasks.get(1n)?.rows.at(-1) ?? "";
  assert.match(last, /the test's exit/);
  assert.doesNotMatch(last, /evicted/);
});

Deno.test("engine does not believe late news of an executor that is gone while one stands there", async () => {
  await using world = await createWorld({ capacity: 1 });
  world.plan = () => ({ runMs: 60_000 });
  const { engine } = await world.start();
  await world.submit(1);
  await world.until("running", () => world.events(1).includes("running"));
  world.pod.tell({ name: world.executor(1), executor: null });
  await world.clock.advance(5_000);
  const state = engine.ledger.get(world.id(1))?.state;
  assert.ok(state?.kind === "running");
  assert.equal(state.presence, "alive");
  await world.cleaned(1);
  assert.deepEqual(world.events(1), HAPPY);
  world.assertClean();
});

Deno.test("engine finds by its list what the watch did not tell", async () => {
  await using world = await createWorld({ capacity: 1 });
  world.plan = () => ({ fate: "no_goodbye" });
  await world.start();
  await world.submit(1);
  await world.until("running", () => world.events(1).includes("running"));
  world.pod.faults.muteWatch = true;
  await world.cleaned(1);
  assert.deepEqual(world.events(1), HAPPY);
  world.assertClean();
});

const results: readonly [Ended, Result][] = [
  ["failure", Result.FAILURE],
  ["cancelled", Result.CANCELLED],
  ["skipped", Result.SKIPPED],
];
for (const [result, stored] of results) {
  Deno.test(`engine passes on that a job ended as ${result}`, async () => {
    await using world = await createWorld();
    world.plan = () => ({ result });
    const { engine } = await world.start();
    await world.submit(1);
    await world.cleaned(1);
    assert.equal(world.gitea.tasks.get(1n)?.result, stored);
    const entry = engine.ledger.get(world.id(1));
    assert.deepEqual([entry?.result, entry?.reason], [result, null]);
    assert.deepEqual(world.events(1).slice(-6), FROM_CLAIM);
  });
}

Deno.test("engine asks after a restart about a job whose end was accepted and not written down", async () => {
  await using world = await createWorld({ capacity: 1 });
  world.plan = (task) => task === "1" ? { fate: "lingers" } : {};
  const first = await world.start();
  world.onJournal = ({ event }) => {
    if (event === "terminal") first.kill();
  };
  await world.submit(1);
  await world.until("the end", () => world.events(1).includes("terminal"));
  world.onJournal = () => {};
  await world.start();
  await world.submit(2);
  await world.clock.advance(55_000);
  assert.deepEqual(world.events(2), []);
  await world.cleaned(2, 180_000);
  assert.equal(world.gitea.tasks.get(1n)?.result, Result.SUCCESS);
  world.assertClean();
});

Deno.test("engine hears at last that Gitea has given up a job whose runner says nothing any more", async () => {
  await using world = await createWorld({ capacity: 1 });
  world.plan = () => ({ runMs: 86_400_000 });
  await world.start();
  await world.submit(1);
  await world.until("running", () => world.events(1).includes("running"));
  const state = world.gitea.tasks.get(1n)?.state;
  await world.clock.advance(900_000);
  assert.equal(world.gitea.tasks.get(1n)?.state, state, "nobody speaks in its runner's place");
  const task = world.gitea.tasks.get(1n);
  assert.ok(task !== undefined);
  task.result = Result.FAILURE;
  await world.until("the end", () => world.events(1).includes("terminal"), 400_000);
  await world.cleaned(1, 120_000);
  world.assertClean();
});

Deno.test("engine goes on while Gitea is away, and ends what it has to end afterwards", async () => {
  await using world = await createWorld({ capacity: 1 });
  world.plan = (task) => task === "1" ? { fate: "gives_up" } : {};
  await world.start();
  world.onJournal = ({ event, assignment }) => {
    if (event === "running" && assignment === world.id(1)) {
      world.gitea.down = new GiteaError("unavailable", "Update task: connection refused");
    }
  };
  await world.submit(1);
  await world.until("running", () => world.events(1).includes("running"));
  await world.clock.advance(60_000);
  assert.ok(!world.events(1).includes("terminal"));
  world.onJournal = () => {};
  world.gitea.down = null;
  await world.submit(2);
  await world.cleaned(1);
  await world.cleaned(2);
  world.assertClean();
});

Deno.test("endExecutors() reports running jobs as cancelled and leaves the others for the next start", async () => {
  await using world = await createWorld({ capacity: 2 });
  world.plan = (task) => task === "1" ? { runMs: 600_000 } : { fate: "never_claims" };
  const first = await world.start();
  for (const task of [1, 2, 3]) await world.submit(task);
  await world.until(
    "both",
    () => world.events(1).includes("running") && world.events(2).includes("backend_ready"),
  );
  await first.stop();
  const limit = new AbortController();
  let done = false;
  const ending = first.engine.endExecutors(limit.signal).then(() => done = true);
  await world.until("the farewell", () => done, 10_000);
  await ending;
  assert.equal(world.pod.executors.size, 0);
  assert.equal(world.gitea.tasks.get(1n)?.result, Result.CANCELLED);
  assert.deepEqual(world.queue.stored(), [world.id(2), world.id(3)]);
  first.kill();
  world.plan = () => ({});
  await world.start();
  await world.cleaned(2);
  await world.cleaned(3);
  assert.equal([...world.store.tasks.values()].length, 0);
  assert.ok(!world.events(2).includes("backend_retry"), "our own deletion is no failure");
  world.assertClean();
});

Deno.test("engine frees nothing and starts nothing with a capacity of 0", async () => {
  await using world = await createWorld({ capacity: 0 });
  await world.start();
  await world.submit(1);
  await world.clock.advance(60_000);
  assert.deepEqual(world.journal, []);
  assert.equal(world.pod.calls.filter((c) => c.method !== "list").length, 0);
});
