import assert from "node:assert/strict";
import type { BackendErrorCode, Executor } from "../../controller/backend.ts";
import { Result } from "../../proto/gen/runner/v1/messages_pb.ts";
import { FROM_CLAIM, HAPPY, TO_READY } from "../support/engine_events.ts";
import { createWorld } from "../support/engine_world.ts";
import type { FakeMethod } from "../fakes/backend.ts";
import { executorOf } from "../support/executor_of.ts";

interface Trouble {
  readonly method: FakeMethod;
  readonly code: BackendErrorCode;
  /** Events of the first try. */
  readonly tells: readonly string[];
  readonly keepsSlot: boolean;
}

const troubles: readonly Trouble[] = [
  { method: "find", code: "unavailable", tells: [], keepsSlot: false },
  { method: "create", code: "refused", tells: ["executor_absent"], keepsSlot: false },
  { method: "create", code: "quota", tells: ["executor_absent"], keepsSlot: false },
  { method: "create", code: "unavailable", tells: ["executor_absent"], keepsSlot: true },
  { method: "create", code: "conflict", tells: ["executor_absent"], keepsSlot: true },
  {
    method: "bindIdentity",
    code: "unavailable",
    tells: ["executor_absent", "executor_created"],
    keepsSlot: true,
  },
];
for (const { method, code, tells, keepsSlot } of troubles) {
  Deno.test(`engine ${keepsSlot ? "keeps" : "gives back"} the slot when ${method} is ${code}, and tries again`, async () => {
    await using world = await createWorld({ capacity: 1 });
    const { engine } = await world.start();
    world.pod.faults.failing.set(method, code);
    await world.submit(1);
    await world.until("the failure", () => world.events(1).includes("backend_retry"));
    const entry = engine.ledger.get(world.id(1));
    assert.deepEqual(world.events(1), ["received", "capacity_acquired", ...tells, "backend_retry"]);
    assert.equal(entry?.reason?.code, code === "quota" ? "quota" : "backend_unavailable");
    assert.equal(engine.pools.pod.holders().size, keepsSlot ? 1 : 0);
    assert.equal(entry?.message === null, !keepsSlot);
    assert.equal((entry?.nextTryAt ?? 0) - world.clock.now(), 15_000);
    world.pod.faults.failing.clear();
    await world.cleaned(1);
    assert.equal(world.pod.peak, 1);
    assert.deepEqual(world.events(1).slice(-FROM_CLAIM.length), FROM_CLAIM);
    world.assertClean();
  });
}

Deno.test("engine finds the executor whose create was done but not answered", async () => {
  await using world = await createWorld({ capacity: 1 });
  await world.start();
  world.pod.faults.loseNextAnswer = true;
  await world.submit(1);
  await world.cleaned(1);
  assert.deepEqual(world.events(1), [
    "received",
    "capacity_acquired",
    "executor_absent",
    "backend_retry",
    "executor_found",
    "identity_bound",
    "backend_ready",
    ...FROM_CLAIM,
  ]);
  assert.equal(world.pod.peak, 1);
  world.assertClean();
});

Deno.test("engine never adopts an object in the way that is not its own, and goes on when it is gone", async () => {
  await using world = await createWorld({ capacity: 2 });
  const { engine } = await world.start();
  world.pod.put(strange(world.executor(1)));
  await world.submit(1);
  await world.submit(2);
  await world.cleaned(2);
  const entry = engine.ledger.get(world.id(1));
  assert.equal(entry?.executor, null);
  assert.match(entry?.reason?.detail ?? "", /not ours is in the way/);
  assert.equal(world.pod.bound.has(world.executor(1)), false);
  await world.until(
    "the judgement",
    () => engine.strangers("pod").every(({ ownership }) => ownership === "foreign"),
  );
  assert.equal(engine.pools.pod.free(), 2);
  assert.deepEqual(
    engine.strangers("pod").map(({ executor, ownership }) => [executor.uid, ownership]),
    [["strange", "foreign"]],
  );
  world.pod.vanish(world.executor(1));
  await world.cleaned(1);
  assert.deepEqual(engine.strangers("pod"), []);
  world.assertClean();
});

Deno.test("engine makes an executor again that ended before the claim, with longer and longer waits", async () => {
  await using world = await createWorld({ capacity: 1 });
  world.plan = (_, attempt) => ({ fate: attempt <= 3 ? "ends_before_claim" : "well" });
  await world.start();
  await world.submit(1);
  await world.cleaned(1, 120_000);
  const round = ["executor_absent", "executor_created", "identity_bound", "backend_ready"];
  assert.deepEqual(world.events(1), [
    "received",
    "capacity_acquired",
    ...[1, 2, 3].flatMap(() => [...round, "executor_found", "backend_retry"]),
    ...round,
    ...FROM_CLAIM,
  ]);
  const delays = world.journal.filter((e) => e.event === "backend_retry").map((e) =>
    e.retryDelayMs
  );
  assert.deepEqual(delays, [2_000, 4_000, 8_000]);
  const made = world.journal.filter((e) => e.event === "executor_created").map((e) => e.at);
  assert.ok((made[1] ?? 0) - (made[0] ?? 0) < 5_000, "a dead executor is not waited for");
  assert.equal(world.pod.peak, 1);
  world.assertClean();
});

Deno.test("engine parks a job after 5 failures, frees its slot, and tries it again after 5 minutes", async () => {
  await using world = await createWorld({ capacity: 1 });
  world.plan = (task, attempt) => ({
    fate: task === "1" && attempt <= 5 ? "ends_before_claim" : "well",
  });
  const { engine } = await world.start();
  await world.submit(1);
  await world.submit(2);
  await world.until("parking", () => world.events(1).includes("parked"), 120_000);
  const parkedAt = world.clock.now();
  const entry = engine.ledger.get(world.id(1));
  assert.equal(entry?.reason?.code, "parked");
  assert.match(entry?.reason?.detail ?? "", /^5 executors failed; last: exit code 1/);
  await world.cleaned(2);
  const record = [...world.store.tasks.values()].find(({ value }) => value.job === "job1");
  assert.equal(record?.value.failures, 5);
  assert.equal(record?.value.parkedUntil, entry?.nextTryAt ?? 0);
  await world.cleaned(1, 400_000);
  const again = world.journal.find((e) => e.assignment === world.id(1) && e.at > parkedAt + 1_000);
  assert.equal(again?.event, "received");
  assert.ok((again?.at ?? 0) - parkedAt >= 299_000);
  assert.equal(world.pod.peak, 1);
  world.assertClean();
});

Deno.test("engine does not make an executor again before the failed one is really gone", async () => {
  await using world = await createWorld({ capacity: 1 });
  world.plan = (_, attempt) => ({ fate: attempt === 1 ? "ends_before_claim" : "well" });
  const { engine } = await world.start();
  world.pod.faults.holdDeletes = true;
  await world.submit(1);
  await world.until("a pending deletion", () => world.events(1).includes("backend_pending"));
  await world.clock.advance(10_000);
  const entry = engine.ledger.get(world.id(1));
  assert.equal(entry?.record?.value.failures, 0);
  assert.match(entry?.reason?.detail ?? "", /being deleted/);
  world.pod.faults.holdDeletes = false;
  world.pod.vanish(world.executor(1));
  await world.cleaned(1);
  assert.equal(world.events(1).filter((e) => e === "executor_created").length, 2);
  world.assertClean();
});

Deno.test("engine looks again when nobody claims in time", async () => {
  await using world = await createWorld({ capacity: 1 });
  world.plan = () => ({ fate: "never_claims" });
  await world.start({ claimTimeoutMs: 10_000 });
  await world.submit(1);
  await world.until("the time-out", () => world.events(1).includes("claim_timeout"));
  await world.until("ready again", () => world.events(1).at(-1) === "backend_ready");
  assert.deepEqual(world.events(1), [
    ...TO_READY,
    "claim_timeout",
    "executor_found",
    "identity_bound",
    "backend_ready",
  ]);
  world.pod.vanish(world.executor(1));
  world.plan = () => ({});
  await world.cleaned(1);
  world.assertClean();
});

Deno.test("engine fails a job at Gitea that has waited for too long, whatever for", async () => {
  await using world = await createWorld({ capacity: 1 });
  world.plan = (task) => ({ fate: task === "1" ? "never_claims" : "well" });
  const { engine } = await world.start({ maxWaitMs: 60_000 });
  await world.submit(1);
  await world.submit(2);
  await world.until("both ended", () => world.events(2).includes("terminal"), 120_000);
  for (const task of [1, 2]) {
    await world.cleaned(task);
    assert.equal(world.gitea.tasks.get(BigInt(task))?.result, Result.FAILURE);
    assert.equal(engine.ledger.get(world.id(task))?.reason?.code, "max_wait");
    assert.match(
      world.gitea.tasks.get(BigInt(task))?.rows.join() ?? "",
      /waited longer than 1 min/,
    );
  }
  assert.deepEqual(world.events(2), ["terminal", "cleaned"]);
  world.assertClean();
});

Deno.test("engine shows an executor that it cannot account for, which keeps a slot and stops nobody", async () => {
  await using world = await createWorld({ capacity: 2 });
  world.pod.put(strange("ci-odd"));
  world.pod.put({ ...strange("ci-other"), uid: "other", metadata: foreign });
  const { engine } = await world.start();
  await world.until("recovery", () => engine.ready());
  const { pod: pool } = engine.pools;
  assert.equal(pool.unknown(), 1);
  assert.equal(pool.free(), 1);
  await world.submit(1);
  await world.submit(2);
  await world.cleaned(2);
  assert.equal(world.pod.calls.some((c) => c.method === "delete" && c.name === "ci-odd"), false);
  const [one, two] = [1, 2].map((task) =>
    world.journal.filter((e) => e.assignment === world.id(task))
  );
  assert.ok(
    (two?.find((e) => e.event === "capacity_acquired")?.at ?? 0) >=
      (one?.find((e) => e.event === "terminal")?.at ?? 0),
  );
  world.pod.vanish(strange("ci-odd").name);
  await world.until("the slot", () => pool.free() === 2);
  assert.deepEqual(engine.strangers("pod").map((s) => s.ownership), ["foreign"]);
  assert.deepEqual(world.events(1), HAPPY);
});

Deno.test("engine takes up an executor that becomes unreadable as unknown, and finishes its job all the same", async () => {
  await using world = await createWorld({ capacity: 1 });
  world.plan = () => ({ runMs: 20_000 });
  await world.start();
  await world.submit(1);
  await world.until("running", () => world.events(1).includes("running"));
  world.pod.corrupt(world.executor(1));
  await world.cleaned(1);
  assert.deepEqual(world.events(1), HAPPY);
  world.assertClean();
});

function strange(name: string): Executor {
  return executorOf({
    name,
    uid: "strange",
    metadata: { labels: { "ci.test.example/runner": "true" }, annotations: {} },
    identityTarget: "x",
  });
}

const foreign = {
  labels: { "ci.test.example/runner": "true", "ci.test.example/instance": "someone" },
  annotations: {},
};
