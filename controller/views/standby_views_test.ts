import assert from "node:assert/strict";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { createFakeViews } from "../../tests/fakes/views.ts";
import type { StoredEntry } from "../journal.ts";
import type { JournalEvent } from "../model/state.ts";
import { type AssignmentId, parseAssignmentId } from "../model/ids.ts";
import { createPhaseStatistics } from "./phases.ts";
import { createStandbyViews } from "./standby_views.ts";

function idOf(task: number): AssignmentId {
  const id = parseAssignmentId(`gitea-task-${task}`);
  assert.ok(id !== undefined);
  return id;
}

/** Views of a standby over a stream to which `happen` adds; `reads` counts looks at it. */
function setup() {
  const clock = createFakeClock();
  const stream: StoredEntry[] = [];
  const state = { reads: 0, fails: false };
  const views = createStandbyViews(createFakeViews({ clock }), {
    clock,
    statistics: createPhaseStatistics(),
    readEvents({ limit }) {
      state.reads++;
      if (state.fails) return Promise.reject(new Error("NATS is away"));
      return Promise.resolve(stream.toReversed().slice(0, limit));
    },
  });
  const happen = (task: number, event: JournalEvent, detail: string | null = null) =>
    stream.push({
      seq: stream.length + 1,
      at: clock.now(),
      event,
      component: "worker",
      backend: task % 2 === 0 ? "vm" : "pod",
      assignment: idOf(task),
      executor: null,
      phase: null,
      retryDelayMs: 0,
      detail,
      subject: {
        repository: "acme/web",
        job: `job-${task}`,
        ref: `refs/heads/b-${task}`,
        runId: "7",
        giteaUrl: null,
      },
    });
  const list = async (query: Partial<Parameters<typeof views.assignments>[0]> = {}) =>
    (await views.assignments({ limit: 50, cursor: null, ...query })).items.map((view) =>
      `${view.job} ${view.state}`
    );
  return { clock, views, state, happen, list };
}

Deno.test("assignments() tells of each assignment what its newest events tell", async () => {
  const t = setup();
  t.happen(1, "received");
  t.happen(2, "received");
  t.happen(1, "capacity_acquired");
  t.happen(1, "running");
  assert.deepEqual(await t.list(), ["job-1 running", "job-2 stored"]);
  assert.deepEqual(await t.list({ state: "stored" }), ["job-2 stored"]);
  assert.deepEqual(await t.list({ backend: "pod", repository: "Acme/Web" }), ["job-1 running"]);
  assert.deepEqual(await t.list({ repository: "acme/other" }), []);
  const { items } = await t.views.assignments({ limit: 50, cursor: null });
  assert.deepEqual(items.map(({ ref }) => ref), ["refs/heads/b-1", "refs/heads/b-2"]);
});

Deno.test("assignments() says of each that waits why, as far as its events tell", async () => {
  const t = setup();
  t.happen(1, "received");
  t.happen(2, "executor_created");
  t.happen(3, "backend_ready");
  t.happen(4, "parked", "the image cannot be pulled");
  t.happen(5, "running");
  const { items } = await t.views.assignments({ limit: 50, cursor: null });
  assert.deepEqual(items.map(({ reason }) => reason?.code), [
    ...["awaiting_slot", "executor_starting", "awaiting_claim", "parked"],
    undefined,
  ]);
  assert.ok(items.every(({ reason }) => reason === null || reason.detail !== ""));
  assert.equal(items[3]?.reason?.detail, "the image cannot be pulled");
});

Deno.test("assignments() lists ended ones newest first, page by page", async () => {
  const t = setup();
  for (const task of [1, 2, 3]) {
    t.happen(task, "terminal", "success");
    t.happen(task, "cleaned");
  }
  const query = { limit: 2, state: "cleaned" } as const;
  const first = await t.views.assignments({ ...query, cursor: null });
  assert.deepEqual(first.items.map(({ job, result }) => [job, result]), [
    ["job-3", "success"],
    ["job-2", "success"],
  ]);
  const second = await t.views.assignments({ ...query, cursor: first.nextCursor });
  assert.deepEqual(second.items.map(({ job }) => job), ["job-1"]);
  assert.equal(second.nextCursor, null);
  await assert.rejects(t.views.assignments({ ...query, cursor: "x" }), RangeError);
});

Deno.test("assignments() reads the stream at most every two seconds, and keeps what it has while it cannot", async () => {
  const t = setup();
  t.happen(1, "received");
  await Promise.all([t.list(), t.list()]);
  assert.equal(t.state.reads, 1);
  assert.equal(t.views.status().eventsAt, new Date(t.clock.now()).toISOString());
  await t.clock.advance(2_000);
  t.state.fails = true;
  assert.deepEqual(await t.list(), ["job-1 stored"]);
  assert.equal(t.state.reads, 2);
});
