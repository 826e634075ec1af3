import assert from "node:assert/strict";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { createFakeOperationStore } from "../../tests/fakes/operations.ts";
import { operationOf } from "../../tests/support/operations.ts";
import { type Action, readAction } from "./action_kinds.ts";
import { operationsPage } from "./operation.ts";
import { createOperations } from "./operations.ts";
import { idOf } from "../../tests/contract/queue_suite.ts";

const { signal } = new AbortController();

function setup() {
  const clock = createFakeClock();
  const store = createFakeOperationStore();
  const make = () => createOperations({ store, clock, logger: silentLogger });
  return { clock, store, make, operations: make() };
}

Deno.test("begin() makes each id once, whichever process asks", async () => {
  const { make, operations } = setup();
  const first = operationOf("op-a");
  assert.deepEqual(await operations.begin(first, signal), { kind: "begun", operation: first });
  const other = await make().begin(operationOf("op-a", { note: "another" }), signal);
  assert.deepEqual(other, { kind: "known", operation: first });
  assert.equal((await operations.begin(operationOf("op-a"), signal)).kind, "known");
});

Deno.test("change() goes on from what another process has written, and leaves an end as it is", async () => {
  const { make, operations, store } = setup();
  const other = make();
  await operations.begin(operationOf("op-a"), signal);
  await other.load(signal);
  await other.change("op-a", { error: "late" }, signal);
  const ended = await operations.change("op-a", { state: "done", endedAt: 5 }, signal);
  assert.deepEqual([ended.state, ended.error], ["done", "late"]);
  assert.equal((await other.change("op-a", { state: "failed" }, signal)).state, "done");
  assert.equal(store.stored.get("op-a")?.operation.state, "done");
  assert.equal((await operations.change("op-a", { state: "undone" }, signal)).state, "undone");
});

Deno.test("load() gives those that are still running, newest first", async () => {
  const { make, operations } = setup();
  await operations.begin(operationOf("op-a", { startedAt: 1 }), signal);
  await operations.begin(operationOf("op-b", { startedAt: 2 }), signal);
  await operations.begin(operationOf("op-c", { startedAt: 3 }), signal);
  await operations.change("op-b", { state: "done", endedAt: 4 }, signal);
  const running = await make().load(signal);
  assert.deepEqual(running.map(({ id }) => id), ["op-c", "op-a"]);
});

Deno.test("begin() keeps some 500 ended ones of seven days, and all that run", async () => {
  const { clock, store, operations } = setup();
  await operations.begin(operationOf("op-runs", { startedAt: 0 }), signal);
  for (let n = 0; n < 555; n++) {
    const at = clock.now() - 1_000 + n;
    await operations.begin(
      operationOf(`op-${n}`, { state: "done", startedAt: at, endedAt: at }),
      signal,
    );
  }
  assert.equal(store.stored.size, 506);
  const [, oldest] = store.stored.keys();
  assert.deepEqual([store.stored.has("op-runs"), oldest], [true, "op-50"]);
  await clock.advance(8 * 86_400_000);
  await operations.begin(operationOf("op-late", { startedAt: clock.now() }), signal);
  assert.deepEqual([...store.stored.keys()], ["op-runs", "op-late"]);
});

Deno.test("subscribe() tells of each change with what was there before, until its signal aborts", async () => {
  const { operations } = setup();
  const told: (readonly [string | null, string])[] = [];
  const stop = new AbortController();
  operations.subscribe((old, now) => void told.push([old?.state ?? null, now.state]), stop.signal);
  await operations.begin(operationOf("op-a"), signal);
  operations.show("op-a", { progress: { done: 0, total: 1 } });
  operations.show("op-a", { progress: { done: 1, total: 2 } });
  await operations.change("op-a", { state: "done", endedAt: 1 }, signal);
  stop.abort();
  await operations.change("op-a", { state: "undone" }, signal);
  assert.deepEqual(told, [[null, "running"], ["running", "running"], ["running", "done"]]);
});

Deno.test("operationsPage() goes through every operation once, filtered or not", () => {
  const all = Array.from(
    { length: 5 },
    (_, n) =>
      operationOf(`op-${n}`, { startedAt: n < 2 ? 1 : n, target: n % 2 === 0 ? "pod" : "vm" }),
  )
    .toSorted((a, b) => b.startedAt - a.startedAt || (a.id < b.id ? 1 : -1));
  const seen: string[] = [];
  let cursor: string | null = null;
  do {
    const page = operationsPage(all, { cursor, limit: 2 });
    assert.equal(page.total, 5);
    seen.push(...page.items.map(({ id }) => id));
    cursor = page.nextCursor;
  } while (cursor !== null);
  assert.deepEqual(seen, all.map(({ id }) => id));
  const pods = operationsPage(all, { cursor: null, limit: 9, target: "POD" });
  assert.deepEqual(pods.items.map(({ id }) => id), ["op-4", "op-2", "op-0"]);
  assert.equal(operationsPage(all, { cursor: null, limit: 9, state: "done" }).total, 0);
  assert.throws(() => operationsPage(all, { cursor: "x", limit: 1 }), RangeError);
});

Deno.test("readAction() reads every action as it was written, and nothing else", () => {
  const id = idOf(1);
  const actions: readonly Action[] = [
    { kind: "cordon", backend: "pod" },
    { kind: "drain", backend: "vm", deadline: null, hold: true },
    { kind: "drain", backend: "vm", deadline: { kind: "at", at: 5 }, hold: false },
    { kind: "drain", backend: "vm", deadline: { kind: "within", ms: 5 }, hold: false },
    { kind: "resume", backend: "pod" },
    { kind: "capacity", backend: "pod", value: 0 },
    { kind: "capacity", backend: "pod", value: null },
    { kind: "label", backend: "vm", value: "vm-dev" },
    { kind: "undo", operation: "op-1" },
    { kind: "cancel", id },
    { kind: "retry", id },
    { kind: "release", id, tier: "forget" },
    { kind: "release-executor", backend: "vm", name: "stray", uid: "u-1", tier: "forget" },
    { kind: "step-down" },
  ];
  for (const action of actions) {
    assert.deepEqual(readAction(JSON.parse(JSON.stringify(action))), action);
  }
  for (const other of [null, "cordon", {}, { kind: "cordon" }, { kind: "release", id }]) {
    assert.equal(readAction(other), undefined);
  }
});
