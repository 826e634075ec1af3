import assert from "node:assert/strict";
import { createFakeClock } from "../lib/fake_clock.ts";
import { type Fields, type Logger, silentLogger } from "../lib/logger.ts";
import { Result } from "../proto/gen/runner/v1/messages_pb.ts";
import { add, createFakeGitea } from "../tests/fakes/gitea_port.ts";
import { createFakeQueue } from "../tests/fakes/queue.ts";
import { createFakeStore } from "../tests/fakes/records.ts";
import { GiteaError } from "./gitea.ts";
import { assignmentIdOf, parseTaskId, type TaskId } from "./model/ids.ts";
import { createOrphanCheck } from "./orphans.ts";
import { firstRecord } from "./first_record.ts";

function task(id: number): TaskId {
  const parsed = parseTaskId(String(id));
  assert.ok(parsed !== undefined);
  return parsed;
}

/** Gitea with tasks, some of them another runner's, and one check that runs. */
async function setup() {
  const clock = createFakeClock();
  const gitea = createFakeGitea();
  const queue = createFakeQueue({ clock });
  const store = createFakeStore();
  const foreign = new Set<bigint>();
  const asked: bigint[] = [];
  const began = new Map<TaskId, number>();
  const known = new Set<TaskId>();
  const warnings: { readonly message: string; readonly fields: Fields }[] = [];
  const logger: Logger = {
    ...silentLogger,
    warn: (message, fields = {}) => void warnings.push({ message, fields }),
    child: () => logger,
  };
  const state = { ready: true, fenced: false, lists: 0, failure: null as Error | null };
  const stop = new AbortController();
  const check = createOrphanCheck({
    clock,
    logger,
    gitea: {
      ...gitea,
      updateTask(update, call) {
        asked.push(update.state.id);
        if (foreign.has(update.state.id)) {
          return Promise.reject(new GiteaError("foreign_task", "Update task: another runner's"));
        }
        return gitea.updateTask(update, call);
      },
    },
    running: {
      // deno-lint-ignore require-await
      async list() {
        state.lists++;
        if (state.failure !== null) throw state.failure;
        return [...began].filter(([id]) =>
          gitea.tasks.get(BigInt(id))?.result === Result.UNSPECIFIED
        ).map(([taskId, at]) => ({
          taskId,
          ageMs: clock.now() - at,
          repository: "acme/web",
          job: "build",
        }));
      },
    },
    queue,
    records: store.records(),
    known: (id) => known.has(id),
    ready: () => state.ready,
    guard() {
      if (state.fenced) throw new Error("This controller must not act any more");
    },
  });
  const running = check.run(stop.signal);
  await clock.advance(0);
  return {
    clock,
    gitea,
    queue,
    store,
    known,
    asked,
    warnings,
    state,
    foreign(id: number) {
      foreign.add(BigInt(id));
    },
    handOut(id: number) {
      gitea.tasks.set(BigInt(id), add());
      began.set(task(id), clock.now());
    },
    task: (id: number) => gitea.tasks.get(BigInt(id)),
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
      assert.equal(clock.pending, 0);
    },
  };
}

const MINUTE = 60_000;

Deno.test("run() fails a task of ours that nobody knows, once, with the reason and its steps closed", async () => {
  await using t = await setup();
  t.handOut(1);
  await t.clock.advance(2 * MINUTE);
  assert.deepEqual(t.asked, []);
  await t.clock.advance(1 * MINUTE + 1);
  const { result, rows = [], sealed, state } = t.task(1) ?? {};
  assert.equal(result, Result.FAILURE);
  assert.match(rows.join("\n"), /this job is lost.*handed it out 3 min ago.*Run the job again/s);
  assert.equal(sealed, true);
  assert.ok(state !== null && state !== undefined && state.steps.length > 0);
  assert.ok(state.steps.every((step) => step.result === Result.CANCELLED));
  const asked = t.asked.length;
  await t.clock.advance(30 * MINUTE);
  assert.equal(t.asked.length, asked);
});

Deno.test("run() asks once about another runner's task and leaves it alone", async () => {
  await using t = await setup();
  t.handOut(1);
  t.foreign(1);
  await t.clock.advance(60 * MINUTE);
  assert.deepEqual(t.asked, [1n]);
  assert.equal(t.task(1)?.result, Result.UNSPECIFIED);
  assert.deepEqual(t.task(1)?.rows, []);
});

Deno.test("run() never asks about tasks of the ledger, the stream and the records", async () => {
  await using t = await setup();
  const call = { signal: new AbortController().signal };
  for (const id of [1, 2, 3]) t.handOut(id);
  t.known.add(task(1));
  const message = { id: assignmentIdOf(task(2)), data: new Uint8Array(1), headers: {} };
  await t.queue.publish({ ...message, backend: "vm" }, call);
  const info = {
    id: assignmentIdOf(task(3)),
    taskId: task(3),
    backend: "pod",
    identity: { spiffeId: "spiffe://a/b", fork: false },
    repository: "acme/web",
    job: "build",
    runId: null,
    giteaUrl: null,
    serverUrl: null,
  } as const;
  await t.store.records().create(task(3), { ...firstRecord(info, 0, "n"), epoch: 0 }, call);
  await t.clock.advance(20 * MINUTE);
  assert.deepEqual(t.asked, []);
  // Ended here, and forgotten, while Gitea's list still has it: seen twice from then on.
  await t.store.records().delete(task(3), call);
  await t.clock.advance(MINUTE);
  assert.deepEqual(t.asked, []);
  await t.clock.advance(MINUTE);
  assert.equal(t.task(3)?.result, Result.FAILURE);
});

Deno.test("run() leaves a task alone that becomes known between the question and the end", async () => {
  await using t = await setup();
  t.handOut(1);
  await t.clock.advance(2 * MINUTE);
  const { updateTask } = t.gitea;
  t.gitea.updateTask = (update, call) => {
    t.known.add(task(1));
    return updateTask(update, call);
  };
  await t.clock.advance(10 * MINUTE);
  assert.equal(t.task(1)?.result, Result.UNSPECIFIED);
});

Deno.test("run() does nothing before recovery, and nothing once another controller leads", async () => {
  await using t = await setup();
  t.state.ready = false;
  t.handOut(1);
  const { lists } = t.state;
  await t.clock.advance(10 * MINUTE);
  assert.ok(t.state.lists <= lists + 1);
  t.state.ready = true;
  t.state.fenced = true;
  await t.clock.advance(10 * MINUTE);
  assert.deepEqual(t.asked, []);
  t.state.fenced = false;
  await t.clock.advance(2 * MINUTE);
  assert.equal(t.task(1)?.result, Result.FAILURE);
});

Deno.test("run() says once that the lists cannot be read, asks less often, and goes on later", async () => {
  await using t = await setup();
  t.handOut(1);
  t.state.failure = new Error("no answer");
  const before = t.state.lists;
  await t.clock.advance(120 * MINUTE);
  assert.equal(t.warnings.length, 1);
  assert.equal(t.warnings[0]?.message, "running tasks at Gitea cannot be listed");
  assert.ok(t.state.lists - before < 15, `${t.state.lists - before} lists`);
  t.state.failure = null;
  await t.clock.advance(20 * MINUTE);
  assert.equal(t.task(1)?.result, Result.FAILURE);
});

Deno.test("run() tries again when Gitea does not take the end", async () => {
  await using t = await setup();
  t.handOut(1);
  await t.clock.advance(2 * MINUTE);
  t.gitea.down = new GiteaError("unavailable", "Update task: no answer");
  await t.clock.advance(5 * MINUTE);
  assert.equal(t.task(1)?.result, Result.UNSPECIFIED);
  t.gitea.down = null;
  await t.clock.advance(MINUTE);
  assert.equal(t.task(1)?.result, Result.FAILURE);
});
