import assert from "node:assert/strict";
import { createFakeClock } from "../lib/fake_clock.ts";
import { silentLogger } from "../lib/logger.ts";
import { add, createFakeGitea } from "../tests/fakes/gitea_port.ts";
import { createLedger } from "./ledger.ts";
import type { AssignmentInfo } from "./model/assignment_info.ts";
import { DEFAULT_DELAYS } from "./model/decide.ts";
import { assignmentIdOf, parseTaskId } from "./model/ids.ts";
import type { Effect, State } from "./model/state.ts";
import { createPool } from "./pool.ts";
import { createVigil } from "./vigil.ts";

function setup(options: { near?: number; maxRps?: number } = {}) {
  const clock = createFakeClock();
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
    gitea,
    ledger,
    zombieTimeoutMs: 600_000,
    maxRps: options.maxRps ?? 5,
    near: () => options.near ?? 0,
    signal: stop.signal,
  });
  const put = (n: number, state: State) => {
    gitea.tasks.set(BigInt(n), add());
    return ledger.add(infoOf(n), state, clock.now());
  };
  const running = vigil.run(stop.signal);
  return {
    clock,
    gitea,
    ledger,
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

Deno.test("run() asks every 10 s for those in the making, and never for those that run", async () => {
  await using t = setup();
  t.put(1, { kind: "admitted" });
  t.put(2, { kind: "cleaned", result: "success" });
  await t.clock.advance(35_000);
  assert.equal(t.beats(1), 3);
  assert.equal(t.beats(2), 0);
});

Deno.test("run() has a cancelled waiting task settled as cancelled within 12 s", async () => {
  await using t = setup({ near: 100 });
  const entry = t.put(1, { kind: "stored" });
  t.gitea.cancel(1n);
  await t.clock.advance(12_000);
  assert.equal(entry.state.kind, "settling");
  assert.deepEqual(t.effects, ["withdraw", "settle"]);
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
