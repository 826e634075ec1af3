import assert from "node:assert/strict";
import { executorOf } from "../../tests/support/executor_of.ts";
import { createLedgerWorld, infoOf } from "../../tests/support/ledger_world.ts";
import { operationOf } from "../../tests/support/operations.ts";
import { events } from "../../tests/support/state_events.ts";
import { type BoardSources, createBoard } from "./board.ts";
import type { StoredEntry } from "../journal.ts";
import type { Entry } from "../entry.ts";
import type { AssignmentId } from "../model/ids.ts";
import type { JournalEvent } from "../model/state.ts";
import type { Operation } from "../actions/operation.ts";
import { createPhaseStatistics } from "./phases.ts";
import { NO_FLAGS } from "../records.ts";
import type { Change, LeaderView, SourceView, StatusView } from "./views.ts";

const unused: SourceView = { state: "unused", since: null, ageMs: null, lastError: null };
const sources: StatusView["sources"] = {
  gitea: unused,
  nats: unused,
  kubernetes: unused,
  spire: unused,
  opensandbox: unused,
};
const leader: LeaderView = {
  mode: "none",
  holder: null,
  self: "me",
  leading: true,
  epoch: 1,
  transitions: null,
  acquiredAt: null,
  renewedAt: null,
  leaseSeconds: null,
  replicas: [],
};

function setup(stored: readonly StoredEntry[] = [], more: Partial<BoardSources> = {}) {
  const world = createLedgerWorld({ capacity: 2 });
  const board = createBoard({
    ledger: world.ledger,
    pools: world.pools,
    statistics: createPhaseStatistics(),
    clock: world.clock,
    from: {
      version: "1",
      profile: "embedded",
      enabled: ["pod"],
      effectiveConfig: {},
      leader: () => leader,
      sources: () => sources,
      flags: () => NO_FLAGS,
      label: (name) => name,
      counts: () => null,
      strangers: () => [],
      ready: () => true,
      nextFetchAt: () => null,
      readEvents({ assignment, beforeSeq, limit }) {
        const found = stored
          .filter((e) => assignment === undefined || e.assignment === assignment)
          .filter((e) => beforeSeq === undefined || e.seq < beforeSeq);
        return Promise.resolve(
          (assignment === undefined ? found.toReversed() : found).slice(0, limit),
        );
      },
      ...more,
    },
  });
  const put = (task: number, sequence: number | null = task): Entry => {
    const entry = world.ledger.add(infoOf(task), { kind: "stored" }, world.clock.now());
    entry.sequence = sequence;
    return entry;
  };
  const dispatch = (task: number, ...names: readonly string[]) => {
    for (const name of names) {
      const event = events[name];
      assert.ok(event !== undefined, name);
      world.ledger.dispatch(infoOf(task).id, event);
    }
  };
  const list = async (query: Parameters<typeof board.assignments>[0]) => {
    const page = await board.assignments(query);
    return { ...page, ids: page.items.map((item) => Number(item.taskId)) };
  };
  return { ...world, board, put, dispatch, list };
}

Deno.test("assignments() lists by stream sequence, with the place of those that wait", async () => {
  const { put, dispatch, board, list } = setup();
  for (const [task, sequence] of [[1, 3], [2, 1], [3, 2], [4, 4]] as const) put(task, sequence);
  dispatch(3, "delivered");
  const page = await list({ limit: 10, cursor: null });
  assert.deepEqual(page.ids, [2, 3, 1, 4]);
  assert.deepEqual(page.items.map((item) => item.position), [1, null, 2, 3]);
  assert.equal(page.total, 4);
  assert.equal((await board.assignment(infoOf(4).id))?.position, 3);
  assert.equal((await board.assignment(infoOf(3).id))?.position, null);
});

Deno.test("assignments() puts those that were recovered without a message before all others", async () => {
  const { put, list, clock } = setup();
  put(5, 1);
  await clock.advance(1_000);
  put(6, null);
  put(7, 2);
  assert.deepEqual((await list({ limit: 10, cursor: null })).ids, [6, 5, 7]);
});

Deno.test("assignments() pages neither repeat nor lose any while others come and go", async () => {
  const { put, dispatch, list } = setup();
  for (let task = 1; task <= 6; task++) put(task);
  const first = await list({ limit: 2, cursor: null, state: "stored" });
  assert.deepEqual(first.ids, [1, 2]);
  dispatch(1, "delivered"); // Waits no more: an offset would now skip one.
  const second = await list({ limit: 2, cursor: first.nextCursor, state: "stored" });
  assert.deepEqual(second.ids, [3, 4]);
  dispatch(4, "delivered"); // The one that the cursor names.
  const third = await list({ limit: 2, cursor: second.nextCursor, state: "stored" });
  assert.deepEqual(third.ids, [5, 6]);
  assert.equal(third.nextCursor, null);
});

Deno.test("assignments() shows ended ones newest first, page by page", async () => {
  const { put, dispatch, list } = setup();
  for (let task = 1; task <= 5; task++) {
    put(task);
    dispatch(task, "gaveUp", "settled", "messageGone", "deleted");
  }
  const first = await list({ limit: 3, cursor: null, state: "cleaned" });
  assert.deepEqual(first.ids, [5, 4, 3]);
  assert.match(first.nextCursor ?? "", /^[A-Za-z0-9_-]+$/);
  const second = await list({ limit: 3, cursor: first.nextCursor, state: "cleaned" });
  assert.deepEqual([second.ids, second.nextCursor], [[2, 1], null]);
});

Deno.test("assignments() filters by backend and by repository without case", async () => {
  const { ledger, list, put } = setup();
  put(1);
  ledger.add(infoOf(2, { repository: "Acme/App", backend: "vm" }), { kind: "stored" }, 0);
  assert.deepEqual((await list({ limit: 9, cursor: null, repository: "aCME/app" })).ids, [2]);
  assert.deepEqual((await list({ limit: 9, cursor: null, backend: "pod" })).ids, [1]);
});

for (const cursor of ["x", "-1", "1-2", "1-2-3-4", "1-2-3 "]) {
  Deno.test(`assignments() refuses the cursor "${cursor}"`, async () => {
    const { list } = setup();
    await assert.rejects(async () => await list({ limit: 1, cursor }), RangeError);
  });
}

Deno.test("backends() counts what each state holds, and the failures of the last hour", async () => {
  const { board, put, dispatch, clock } = setup();
  for (let task = 1; task <= 8; task++) put(task);
  dispatch(1, "delivered", "seen", "ready", "claim");
  dispatch(2, "delivered");
  dispatch(3, "unreadable");
  dispatch(4, "gaveUp", "settled", "messageGone", "deleted");
  const view = board.backend("pod");
  assert.deepEqual(
    [view?.used, view?.free, view?.waiting, view?.running, view?.parked, view?.failures],
    [2, 0, 4, 1, 1, { max_wait: 1 }],
  );
  assert.deepEqual(view?.slots.map((slot) => [slot.assignmentId, slot.state]), [
    [infoOf(1).id, "claimed"],
    [infoOf(2).id, "admitted"],
  ]);
  await clock.advance(61 * 60_000);
  assert.deepEqual(board.backend("pod")?.failures, {});
  assert.equal(board.backend("vm"), undefined, "it is not enabled");
});

Deno.test("subscribe() tells what was there before, and what is there now", async () => {
  const { board, put, dispatch, ledger, clock } = setup();
  put(1);
  const changes: Change[] = [];
  const stop = new AbortController();
  board.subscribe((change) => void changes.push(change), stop.signal);
  dispatch(1, "delivered");
  await clock.advance(100);
  const told = changes.map((change) => [change.kind, stateOf(change.old), stateOf(change.new)]);
  assert.deepEqual(told, [["assignment", "stored", "admitted"], ["backend", 0, 1]]);
  changes.length = 0;
  put(2);
  await clock.advance(100);
  assert.deepEqual(changes.map((change) => [change.kind, change.old === null]), [
    ["assignment", true],
    ["backend", false],
  ]);
  changes.length = 0;
  const entry = ledger.get(infoOf(1).id);
  assert.ok(entry !== undefined);
  ledger.touch(entry); // Nothing that anybody sees.
  await clock.advance(100);
  assert.deepEqual(changes, []);
  dispatch(2, "delivered");
  changes.length = 0;
  stop.abort();
  dispatch(1, "gaveUp");
  await clock.advance(100);
  assert.deepEqual(changes, []);
});

Deno.test("subscribe() tells of a backend once for many changes at a time", async () => {
  const { board, put, clock } = setup();
  const changes: Change[] = [];
  const stop = new AbortController();
  board.subscribe((change) => change.kind === "backend" && changes.push(change), stop.signal);
  for (let task = 1; task <= 1_000; task++) put(task);
  await clock.advance(100);
  assert.deepEqual(changes.map(waitingOf), [[0, 1_000]]);
  put(1_001);
  await clock.advance(99);
  assert.equal(changes.length, 1);
  await clock.advance(1);
  assert.deepEqual(changes.map(waitingOf), [[0, 1_000], [1_000, 1_001]]);
  stop.abort();
});

Deno.test("subscribe() tells of executors: when they come, speak and go", () => {
  const { board, put, dispatch, ledger } = setup();
  const entry = put(1);
  const changes: Change[] = [];
  const stop = new AbortController();
  board.subscribe(
    (change) => change.kind === "executor" && changes.push(change),
    stop.signal,
  );
  dispatch(1, "delivered");
  entry.executor = executorOf();
  dispatch(1, "seen", "ready", "claim", "held", "messageGone");
  entry.heartbeatAt = 5;
  ledger.touch(entry);
  dispatch(1, "final", "marked", "ended", "gone");
  const told = changes.map(({ old, new: now }) => [old === null, heartbeatOf(now)]);
  assert.deepEqual(told.at(0), [true, null]);
  assert.ok(told.some(([, beat]) => beat === "1970-01-01T00:00:00.005Z"));
  assert.deepEqual(changes.at(-1)?.new, null);
  stop.abort();
});

Deno.test("assignment() tells of one that memory has forgotten from the events", async () => {
  const { board } = setup([
    told(1, 1, "received"),
    told(1, 2, "capacity_acquired"),
    told(1, 3, "executor_created"),
    told(1, 4, "runner_claimed"),
    told(1, 5, "running"),
    told(1, 6, "terminal", "failure"),
    told(1, 7, "cleaned"),
    told(2, 8, "received"),
    told(2, 9, "capacity_acquired"),
  ]);
  const over = await board.assignment(infoOf(1).id);
  assert.deepEqual([over?.state, over?.result, over?.events.length], ["cleaned", "failure", 7]);
  assert.equal((await board.assignment(infoOf(2).id))?.state, "admitted");
  assert.equal(await board.assignment(infoOf(3).id), undefined);
});

Deno.test("assignment() joins what an earlier process told with what this one has", async () => {
  const { board, put, dispatch, clock } = setup([told(1, 1, "received"), told(1, 2, "running")]);
  const entry = put(1);
  entry.restored = true;
  await clock.advance(1_000);
  dispatch(1, "delivered");
  const view = await board.assignment(infoOf(1).id);
  assert.deepEqual(view?.events.map((event) => [event.event, event.seq]), [
    ["received", 1],
    ["running", 2],
    ["received", null],
    ["capacity_acquired", null],
  ]);
});

Deno.test("assignment() tells no first row of a job that ran before this process", async () => {
  const before = told(1, 2, "running");
  const { board, put } = setup([told(1, 1, "received"), before]);
  const entry = put(1);
  entry.restored = true;
  entry.moments.set("first_row", before.at + 1);
  const view = await board.assignment(infoOf(1).id);
  assert.deepEqual(view?.phases.map(({ name }) => name).filter((name) => name === "first_row"), []);
  assert.ok(view?.phases.some(({ name }) => name === "run"));
});

Deno.test("history() goes back page by page to the first event, and ends there", async () => {
  const { board } = setup([1, 2, 3, 4].map((seq) => told(seq, seq, "received")));
  const first = await board.history({ limit: 2, cursor: null });
  assert.deepEqual([first.items.map((item) => item.seq), first.nextCursor], [[4, 3], "3"]);
  const second = await board.history({ limit: 2, cursor: first.nextCursor });
  assert.deepEqual([second.items.map((item) => item.seq), second.nextCursor], [[2, 1], null]);
  await assert.rejects(board.history({ limit: 2, cursor: "x" }), RangeError);
});

Deno.test("assignments() takes several states at once, in one order and with one total", async () => {
  const { put, dispatch, list } = setup();
  for (let task = 1; task <= 5; task++) put(task);
  dispatch(2, "delivered");
  dispatch(3, "unreadable");
  dispatch(5, "gaveUp", "settled", "messageGone", "deleted");
  const states = ["stored", "parked", "admitted"] as const;
  const first = await list({ limit: 3, cursor: null, states });
  assert.deepEqual([first.ids, first.total], [[1, 2, 3], 4]);
  const second = await list({ limit: 3, cursor: first.nextCursor, states });
  assert.deepEqual([second.ids, second.nextCursor], [[4], null]);
  const ended = await list({ limit: 9, cursor: null, states: ["cleaned", "invalid"] });
  assert.deepEqual(ended.ids, [5]);
});

Deno.test("assignments() shows places of the queue as it is now", async () => {
  const { put, dispatch, list } = setup();
  for (let task = 1; task <= 3; task++) put(task);
  const places = async () =>
    (await list({ limit: 9, cursor: null, state: "stored" })).items.map((item) => [
      item.taskId,
      item.position,
    ]);
  assert.deepEqual(await places(), [["1", 1], ["2", 2], ["3", 3]]);
  dispatch(1, "delivered");
  assert.deepEqual(await places(), [["2", 1], ["3", 2]]);
});

Deno.test("canary() and hour() say what they can, and unknown where they cannot", () => {
  const { board } = setup();
  const canary = board.canary();
  assert.deepEqual([canary.enabled, canary.override], [false, null]);
  assert.deepEqual(canary.labels.map(({ label, ended }) => [label, ended]), [
    ["vm", 0],
    ["vm-dev", 0],
  ]);
  assert.equal(canary.labels[0]?.startMs.p50, null);
  assert.equal(board.hour("pod")?.minutes.length, 60);
  assert.equal(board.hour("vm"), undefined, "it is not enabled");
});

Deno.test("operation(), operations(), audit() and health() are empty where nothing keeps them", async () => {
  const { board } = setup();
  const query = { limit: 5, cursor: null };
  assert.equal(await board.operation("op-1"), undefined);
  assert.deepEqual((await board.operations(query)).items, []);
  assert.deepEqual((await board.audit(query)).items, []);
  assert.deepEqual(board.health(), { selfTests: [], versions: [] });
  await board.recheck(new AbortController().signal);
});

function told(
  task: number,
  seq: number,
  event: JournalEvent,
  detail: string | null = null,
): StoredEntry {
  const assignment: AssignmentId = infoOf(task).id;
  return {
    seq,
    at: 1_000 + seq,
    event,
    component: "worker",
    backend: "pod",
    assignment,
    executor: null,
    phase: null,
    retryDelayMs: 0,
    detail,
  };
}

function waitingOf(change: Change): unknown[] {
  return change.kind === "backend" ? [change.old?.waiting, change.new.waiting] : [];
}

function stateOf(view: Change["new"]): unknown {
  if (view === null) return null;
  if ("state" in view) return view.state;
  return "used" in view ? view.used : null;
}

function heartbeatOf(view: Change["new"]): unknown {
  return view !== null && "heartbeatAt" in view ? view.heartbeatAt : null;
}

Deno.test("subscribe() tells of operations and of flags, with what was there before", () => {
  let flags = NO_FLAGS;
  let flagsChanged = (_: "pod" | "vm") => {};
  let operationChanged = (_old: Operation | null, _now: Operation) => {};
  const { board } = setup([], {
    flags: () => flags,
    onFlags: (listener) => void (flagsChanged = listener),
    onOperation: (listener) => void (operationChanged = listener),
  });
  const changes: Change[] = [];
  board.subscribe((change) => void changes.push(change), new AbortController().signal);
  const operation = operationOf("op-1");
  operationChanged(null, operation);
  flags = { ...NO_FLAGS, cordon: { by: "alice", at: 0, note: "" } };
  flagsChanged("pod");
  flagsChanged("vm");
  operationChanged(operation, { ...operation, state: "done" });
  const told = changes.map(({ kind, old, new: now }) => [
    kind,
    old === null ? null : "state" in old ? old.state : "cordoned" in old && old.cordoned?.by,
    now === null ? null : "state" in now ? now.state : "cordoned" in now && now.cordoned?.by,
  ]);
  assert.deepEqual(told, [
    ["operation", null, "running"],
    ["backend", undefined, "alice"],
    ["operation", "running", "done"],
  ]);
});
