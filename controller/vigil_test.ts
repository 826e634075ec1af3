import assert from "node:assert/strict";
import { untilAborted } from "../lib/abortable.ts";
import { createFakeClock } from "../lib/fake_clock.ts";
import { silentLogger } from "../lib/logger.ts";
import { add, createFakeGitea } from "../tests/fakes/gitea_port.ts";
import { GiteaError } from "./gitea.ts";
import { createLedger } from "./ledger.ts";
import type { AssignmentInfo } from "./model/assignment_info.ts";
import { DEFAULT_DELAYS } from "./model/decision.ts";
import { assignmentIdOf, parseTaskId } from "./model/ids.ts";
import type { Effect, State } from "./model/state.ts";
import { createPool } from "./pool.ts";
import { createVigil } from "./vigil.ts";
import { createWaitingRows } from "./waiting_rows.ts";

function setup(
  options: { near?: number; maxRps?: number; answer?: (id: bigint) => Promise<void> } = {},
) {
  const fake = createFakeClock();
  const wall = { aheadMs: 0 };
  const clock = { ...fake, now: () => fake.now() + wall.aheadMs };
  const gitea = createFakeGitea();
  const effects: string[] = [];
  const stop = new AbortController();
  const pool = createPool({ capacity: () => 4, open: () => true });
  const ledger = createLedger({
    clock,
    journal: { write() {} },
    pools: { pod: pool, vm: pool },
    delays: DEFAULT_DELAYS,
    run: (_, effect: Exclude<Effect, { kind: "journal" }>) => void effects.push(effect.kind),
  });
  const vigil = createVigil({
    clock,
    logger: silentLogger,
    gitea: {
      ...gitea,
      async updateTask(update, call) {
        const answer = await gitea.updateTask(update, call);
        await options.answer?.(update.state.id);
        return answer;
      },
    },
    ledger,
    rows: createWaitingRows({ clock, gitea, ledger, pools: { pod: pool, vm: pool } }),
    zombieTimeoutMs: 600_000,
    maxRps: options.maxRps ?? 5,
    near: () => options.near ?? 0,
    signal: new AbortController().signal,
  });
  const put = (n: number, state: State) => {
    gitea.tasks.set(BigInt(n), add());
    return ledger.add(infoOf(n), state, clock.now());
  };
  const running = vigil.run(stop.signal);
  return {
    clock,
    wall,
    gitea,
    ledger,
    vigil,
    effects,
    put,
    beats: (n: number) => gitea.tasks.get(BigInt(n))?.heartbeats,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await clock.advance(0);
      await running;
    },
  };
}

function infoOf(n: number): AssignmentInfo {
  const taskId = parseTaskId(String(n));
  assert.ok(taskId);
  return {
    id: assignmentIdOf(taskId),
    taskId,
    backend: "pod",
    identity: { spiffeId: `spiffe://example.org/ci/o/r/${n}`, fork: false },
    repository: "o/r",
    job: "build",
    runId: null,
    giteaUrl: null,
    serverUrl: null,
  };
}

Deno.test("run() asks for a far waiting task once in a third of the zombie time-out", async () => {
  await using t = setup();
  t.put(1, { kind: "stored" });
  await t.clock.advance(190_000);
  assert.equal(t.beats(1), 0);
  await t.clock.advance(12_000);
  assert.equal(t.beats(1), 1);
  await t.clock.advance(202_000);
  assert.equal(t.beats(1), 2);
});

Deno.test("run() asks within 10 s for those in the making, and never for those that run", async () => {
  await using t = setup();
  t.put(1, { kind: "admitted" });
  t.put(2, { kind: "cleaned", result: "success" });
  for (let asked = 1; asked <= 3; asked++) {
    await t.clock.advance(10_000);
    assert.ok((t.beats(1) ?? 0) >= asked, `${t.beats(1)} heartbeats in ${asked * 10} s`);
  }
  assert.ok((t.beats(1) ?? 0) <= 4);
  assert.equal(t.beats(2), 0);
});

Deno.test("run() has a cancelled waiting task settled as cancelled within 10 s", async () => {
  await using t = setup({ near: 100 });
  const entry = t.put(1, { kind: "stored" });
  t.gitea.cancel(1n);
  await t.clock.advance(10_000);
  assert.equal(entry.state.kind, "settling");
  assert.deepEqual(t.effects, ["withdraw", "settle"]);
});

Deno.test("run() asks as ever when the wall clock is set by an hour", async () => {
  await using t = setup({ near: 100 });
  t.put(1, { kind: "stored" });
  t.wall.aheadMs = -3_600_000;
  await t.clock.advance(10_000);
  assert.equal(t.beats(1), 1, "set back");
  t.put(2, { kind: "stored" });
  t.wall.aheadMs = 3_600_000;
  await t.clock.advance(3_000);
  assert.equal(t.beats(2), 0, "set on");
});

Deno.test("run() stays within its budget when many wait", async () => {
  await using t = setup({ near: 100, maxRps: 2 });
  for (let n = 1; n <= 50; n++) t.put(n, { kind: "stored" });
  await t.clock.advance(60_000);
  const all = [...t.gitea.tasks.values()].reduce((sum, task) => sum + task.heartbeats, 0);
  assert.ok(all <= 120 && all >= 80, `${all} heartbeats in 60 s at 2 a second`);
  const served = [...t.gitea.tasks.values()].filter((task) => task.heartbeats > 0).length;
  assert.equal(served, 50);
});

Deno.test("run() asks first for those that are latest for their interval", async () => {
  await using t = setup({ near: 1, maxRps: 1 });
  for (let n = 1; n <= 30; n++) t.put(n, { kind: "stored" }).sequence = n;
  await t.clock.advance(300_000);
  // All others together need but one heartbeat in 200 s each; the next one is asked every 10 s.
  assert.ok((t.beats(1) ?? 0) >= 15, `${t.beats(1)} heartbeats of the next one`);
  assert.ok((t.beats(30) ?? 0) >= 1);
});

Deno.test("confirm() asks Gitea unless it has just spoken of the task", async () => {
  await using t = setup();
  const entry = t.put(1, { kind: "admitted" });
  await t.vigil.confirm(entry);
  assert.equal(t.beats(1), 0, "it has just been handed out");
  await t.clock.advance(3_000);
  await t.vigil.confirm(entry);
  await t.vigil.confirm(entry);
  assert.equal(t.beats(1), 1);
});

Deno.test("confirm() has a job settled that was cancelled meanwhile, and never rejects", async () => {
  await using t = setup();
  const entry = t.put(1, { kind: "admitted" });
  await t.clock.advance(3_000);
  t.gitea.down = new GiteaError("unavailable", "Update task: refused");
  await t.vigil.confirm(entry);
  assert.equal(entry.state.kind, "admitted");
  await t.clock.advance(3_000);
  t.gitea.down = null;
  t.gitea.cancel(1n);
  await t.vigil.confirm(entry);
  assert.equal(entry.state.kind, "settling");
});

Deno.test("run() tells each job in its log where it stands, at most once a minute, after what is there", async () => {
  await using t = setup({ near: 4 });
  const first = t.put(1, { kind: "stored" });
  const second = t.put(2, { kind: "stored" });
  first.sequence = 1;
  second.sequence = 2;
  const reason = { code: "awaiting_slot", since: 0 } as const;
  second.reason = { ...reason, detail: "every slot is taken\u001b[31m\nby others" };
  const log = t.gitea.tasks.get(2n);
  log?.rows.push("a row of an earlier start");
  await t.clock.advance(12_000);
  assert.deepEqual(log?.rows, [
    "a row of an earlier start",
    'Waiting for "pod", position 2 of 2, 0 of 4 slots in use: every slot is taken [31m by others',
  ]);
  await t.clock.advance(30_000);
  t.ledger.dispatch(first.info.id, { kind: "cancelled", detail: "cancelled at Gitea" });
  await t.clock.advance(20_000);
  assert.equal(log?.rows.length, 2, "the minute is not over");
  await t.clock.advance(30_000);
  assert.match(log?.rows[2] ?? "", /position 1 of 1/);
  await t.clock.advance(300_000);
  assert.equal(log?.rows.length, 3, "nothing new is not said again");
});

Deno.test("run() tells a job that starts again why its last executor failed, and once", async () => {
  await using t = setup();
  const entry = t.put(1, { kind: "admitted" });
  entry.failed = "its image\u001b[31m is not there";
  const log = t.gitea.tasks.get(1n);
  await t.clock.advance(10_000);
  assert.deepEqual(log?.rows, [
    'Starting on "pod"; the executor before it failed: its image [31m is not there',
  ]);
  entry.reason = { code: "executor_failed", detail: entry.failed, since: 0 };
  await t.clock.advance(70_000);
  assert.equal(log?.rows[1], 'Starting on "pod": its image [31m is not there');
});

Deno.test("run() ends at once although Gitea does not answer", async () => {
  const t = setup();
  t.put(1, { kind: "admitted" });
  t.gitea.updateTask = (_, { signal }) => untilAborted(signal);
  await t.clock.advance(11_000);
  await t[Symbol.asyncDispose]();
});

Deno.test("run() does not ask about one that is claimed while it waits for others' answers", async () => {
  const gate = Promise.withResolvers<void>();
  await using t = setup({ near: 100, maxRps: 1_000, answer: () => gate.promise });
  const entries = Array.from({ length: 17 }, (_, i) => t.put(i + 1, { kind: "stored" }));
  await t.clock.advance(9_100);
  const last = entries.find(({ info }) => t.beats(Number(info.taskId)) === 0);
  assert.ok(last, "as many as may be under way are asked about, one waits");
  last.claiming = new Promise(() => {});
  await t.vigil.stop(last);
  gate.resolve();
  await t.clock.advance(1_000);
  assert.equal(t.beats(Number(last.info.taskId)), 0);
});

Deno.test("stop() waits for a confirmation that began while a heartbeat of it was due", async () => {
  const gates = new Map<bigint, PromiseWithResolvers<void>[]>();
  await using t = setup({
    near: 100,
    maxRps: 10,
    answer(id) {
      const gate = Promise.withResolvers<void>();
      gates.set(id, [...gates.get(id) ?? [], gate]);
      return gate.promise;
    },
  });
  const [first, second] = [t.put(1, { kind: "stored" }), t.put(2, { kind: "stored" })];
  await t.clock.advance(9_050);
  const [late] = [first, second].filter(({ info }) => t.beats(Number(info.taskId)) === 0);
  assert.ok(late, "both are due, one is asked about first");
  const confirming = t.vigil.confirm(late);
  await t.clock.advance(500);
  assert.equal(t.beats(Number(late.info.taskId)), 1, "not asked about twice at a time");
  for (const each of [...gates.values()].flat()) each.resolve();
  await confirming;
});
