import assert from "node:assert/strict";
import { createAuditLog } from "../../clients/nats/audit_log.ts";
import { createEventLog } from "../../clients/nats/event_log.ts";
import { createOperationStore } from "../../clients/nats/operation_store.ts";
import type { AuditEntry } from "../../controller/actions/audit.ts";
import { QueueError } from "../../controller/queue.ts";
import { createFakeOperationStore } from "../fakes/operations.ts";
import { call } from "../support/calls.ts";
import { DEPS, openNatsWorld } from "../support/nats_world.ts";
import { operationOf } from "../support/operations.ts";
import { inMemory, onNats } from "../support/store_worlds.ts";
import { idOf } from "./queue_suite.ts";

const isConflict = (error: unknown) => error instanceof QueueError && error.code === "conflict";

const STORES = {
  "fake operations": inMemory(createFakeOperationStore),
  "NATS operations": onNats((connection) => createOperationStore(connection, DEPS)),
} as const;

for (const [name, setup] of Object.entries(STORES)) {
  Deno.test(`${name}: what is written is read back whole, each id once`, async () => {
    await using world = await setup();
    const { store } = world;
    const first = operationOf("op-1", {
      action: { kind: "drain", backend: "pod", deadline: { kind: "within", ms: 5 }, hold: true },
      before: { drain: null },
      progress: { done: 0, total: 15 },
    });
    const made = await store.create(first, call);
    assert.deepEqual(made.operation, first);
    assert.deepEqual(await store.get("op-1", call), made);
    await assert.rejects(store.create(operationOf("op-1"), call), isConflict);
    assert.equal(await store.get("op-2", call), undefined);
  });

  Deno.test(`${name}: update() replaces only its own revision; remove() takes it away`, async () => {
    await using world = await setup();
    const { store } = world;
    const made = await store.create(operationOf("op-1"), call);
    const ended = { ...made.operation, state: "done", endedAt: 9, error: "late" } as const;
    const now = await store.update({ ...made, operation: ended }, call);
    await assert.rejects(store.update(made, call), isConflict);
    assert.deepEqual(await store.list(call), [now]);
    await store.create(operationOf("op-2"), call);
    await store.remove(now, call);
    assert.deepEqual((await store.list(call)).map(({ operation }) => operation.id), ["op-2"]);
  });
}

function audit(n: number): AuditEntry {
  return {
    id: `a-${n}`,
    at: n,
    actor: "alice",
    role: "operator",
    action: "capacity",
    target: "pod",
    before: { capacity: 4 },
    after: { capacity: n },
    note: 'a "note"',
    requestId: "r",
    result: "done",
    error: null,
  };
}

Deno.test("audit append() keeps entries over an outage, in order and apart from the jobs' events", async () => {
  await using world = await openNatsWorld({ jetstreamSync: "always" });
  await using log = createAuditLog(world.connection, DEPS);
  await using events = createEventLog(world.connection, DEPS);
  events.append({
    at: 1,
    event: "received",
    component: "worker",
    backend: "pod",
    assignment: idOf(1),
    executor: null,
    phase: null,
    retryDelayMs: 0,
    detail: null,
  });
  for (let n = 1; n <= 3; n++) log.append(audit(n));
  await world.nats.kill9();
  for (let n = 4; n <= 6; n++) log.append(audit(n));
  await world.nats.restart();
  await log.flush(call.signal);
  await events.flush(call.signal);
  const stored = await log.read(call);
  assert.deepEqual(stored.map(({ entry }) => entry), [1, 2, 3, 4, 5, 6].map(audit));
  assert.equal((await events.read({ limit: 100 }, call)).length, 1);
  assert.equal((await events.read({ limit: 100, newestFirst: true }, call)).length, 1);
});
