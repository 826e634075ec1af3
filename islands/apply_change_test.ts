import assert from "node:assert/strict";
import { type Board, type GroupName, groupOf, GROUPS } from "../components/board.ts";
import { createFakeClock } from "../lib/fake_clock.ts";
import type { AssignmentView, Change } from "../controller/views/views.ts";
import type { StateName } from "../controller/model/state.ts";
import { jobOf } from "../tests/fakes/sample_jobs.ts";
import { createFakeViews, type FakeViewsOptions } from "../tests/fakes/views.ts";
import { fc } from "../tests/support/property.ts";
import { loadBoard, parseBoardQuery } from "../web/load_board.ts";
import { applyChange, applyStatus } from "./apply_change.ts";

const AT = "2027-01-15T08:00:00.000Z";

function setup(options: FakeViewsOptions = {}, query = "") {
  const clock = createFakeClock();
  const views = createFakeViews({ clock }, options);
  const load = () =>
    loadBoard(
      { views, lastEventId: () => "1-1", now: clock.now },
      parseBoardQuery(new URLSearchParams(query)),
    );
  return { clock, views, load };
}

const sizes = ({ waiting, running, ended }: Board) => [waiting.total, running.total, ended.total];
const ids = (board: Board, name: GroupName) => board[name].items.map(({ id }) => id);

Deno.test("applyChange() leads to what the server shows, for any sequence of changes", async () => {
  const states: readonly StateName[] = Object.values(GROUPS).flat();
  const step = fc.record({
    task: fc.integer({ min: 1, max: 6 }),
    state: fc.option(fc.constantFrom(...states), { nil: null }),
    age: fc.integer({ min: 0, max: 50 }),
    vm: fc.boolean(),
  });
  const queries = fc.constantFrom("", "backend=vm", "state=running", "repository=acme/web");
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), queries, async (steps, query) => {
      const { views, load } = setup({ jobs: [] }, query);
      let board = await load();
      views.subscribe((change) => {
        board = applyChange(board, change, AT);
      }, new AbortController().signal);
      for (const { task, state, age, vm } of steps) {
        if (state === null) views.drop(task);
        else views.put({ task, state, age, backend: vm ? "vm" : "pod" });
      }
      const fresh = await load();
      assert.deepEqual(sizes(board), sizes(fresh));
      for (const name of ["waiting", "running", "ended"] as const) {
        assert.deepEqual(ids(board, name), ids(fresh, name), name);
      }
      assert.deepEqual(board.status.backends, fresh.status.backends);
    }),
  );
});

Deno.test("applyChange() keeps totals right when most rows are not drawn", async () => {
  const { views, load } = setup({ jobs: [], waiting: 250 });
  let board = await load();
  views.subscribe((change) => {
    board = applyChange(board, change, AT);
  }, new AbortController().signal);
  views.put({ task: 10_200, state: "running", age: 1 });
  views.drop(10_000);
  assert.deepEqual(sizes(board), [248, 1, 0]);
  assert.equal(board.waiting.items.length, 99);
});

Deno.test("applyChange() moves everyone behind one place up when a job leaves the queue", () => {
  const queued = (task: number, position: number): AssignmentView =>
    jobOf({ task, state: "stored", age: 100 - position, position }, Date.parse(AT));
  const items = [queued(1, 1), queued(2, 2), queued(3, 3)];
  const next = applyChange(boardOf(items), {
    kind: "assignment",
    old: queued(2, 2),
    new: jobOf({ task: 2, state: "admitted", age: 98 }, Date.parse(AT)),
  }, AT);
  assert.deepEqual(next.waiting.items.map(({ taskId, position }) => [taskId, position]), [
    ["1", 1],
    ["2", null],
    ["3", 2],
  ]);
});

Deno.test("applyChange() puts no new row on a later page of a list", () => {
  const board = { ...boardOf([]), first: false };
  const job = jobOf({ task: 5, state: "stored", age: 1 }, Date.parse(AT));
  const next = applyChange(board, { kind: "assignment", old: null, new: job }, AT);
  assert.deepEqual(next.waiting, { items: [], total: 1 });
});

Deno.test("applyChange() ignores what the page does not show", () => {
  const board = boardOf([]);
  const change: Change = { kind: "executor", old: null, new: null };
  assert.equal(applyChange(board, change, AT), board);
});

Deno.test("applyStatus() counts ages from when the status was read", () => {
  const board = boardOf([]);
  const later = "2027-01-15T08:00:05.000Z";
  const next = applyStatus(board, { ...board.status, ready: false }, later);
  assert.deepEqual([next.statusAt, next.status.ready], [later, false]);
  const { leader } = board.status;
  const changed = applyChange(
    next,
    { kind: "leader", old: leader, new: leader },
    "2027-01-15T08:00:09.000Z",
  );
  assert.equal(changed.statusAt, later);
});

Deno.test("groupOf() has a list for every state", () => {
  for (const [name, states] of Object.entries(GROUPS)) {
    for (const state of states) assert.equal(groupOf(state), name);
  }
});

function boardOf(waiting: readonly AssignmentView[]): Board {
  const clock = createFakeClock();
  const none = { items: [], total: 0 };
  return {
    at: AT,
    statusAt: AT,
    lastEventId: "1-1",
    status: createFakeViews({ clock }, { jobs: [] }).status(),
    filters: { backend: null, state: null, repository: null, list: null },
    waiting: { items: waiting, total: waiting.length },
    running: none,
    ended: none,
    nextCursor: null,
    first: true,
    notices: [],
  };
}

Deno.test("applyChange() numbers those that wait, although the stream tells no places", async () => {
  const { views, load } = setup({ jobs: [] });
  let board = await load();
  const apply = (change: Change) => board = applyChange(board, change, AT);
  views.subscribe(apply, new AbortController().signal);
  const places = () => board.waiting.items.map(({ taskId, position }) => [taskId, position]);
  for (const [index, task] of [1, 2, 3].entries()) {
    views.put({ task, state: "stored", age: 30 - index });
  }
  views.put({ task: 4, state: "stored", age: 1, backend: "vm" });
  assert.deepEqual(places(), [["1", 1], ["2", 2], ["3", 3], ["4", 1]]);
  views.put({ task: 2, state: "stored", age: 29, reason: ["awaiting_slot", "still"] });
  assert.deepEqual(places()[1], ["2", 2], "another reason, the same place");
  views.put({ task: 1, state: "admitted", age: 30 });
  assert.deepEqual(places(), [["1", null], ["2", 1], ["3", 2], ["4", 1]]);
});
