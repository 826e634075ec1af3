import assert from "node:assert/strict";
import { setImmediate } from "node:timers/promises";
import type { JournalEntry } from "../../controller/journal.ts";
import { type AssignmentId, assignmentIdOf, parseTaskId } from "../../controller/model/ids.ts";
import type { ExecutorName } from "../../controller/model/ids.ts";
import type { JournalEvent } from "../../controller/model/state.ts";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { createFakeCluster } from "../../tests/fakes/cluster.ts";
import { ClusterError } from "./cluster.ts";
import { createPodEvents } from "./pod_events.ts";

function idOf(task: string): AssignmentId {
  const id = parseTaskId(task);
  assert.ok(id !== undefined);
  return assignmentIdOf(id);
}

const ID = idOf("1");
const WHO = { name: "ci-1" as ExecutorName, uid: "uid-1" };

function entryOf(event: JournalEvent, detail: string | null = null, id = ID): JournalEntry {
  return {
    at: 0,
    event,
    component: "worker",
    backend: "pod",
    assignment: id,
    executor: null,
    phase: null,
    retryDelayMs: 0,
    detail,
  };
}

function setup() {
  const clock = createFakeClock();
  const cluster = createFakeCluster({ clock });
  const executors = new Map<AssignmentId, typeof WHO>([[ID, WHO]]);
  const warnings: { message: string; fields: unknown }[] = [];
  const events = createPodEvents({
    cluster,
    clock,
    logger: { ...silentLogger, warn: (message, fields) => void warnings.push({ message, fields }) },
    executorOf: (id) => executors.get(id) ?? null,
    guard() {
      if (world.fenced) throw new Error("not the leader");
    },
  });
  const stop = new AbortController();
  const running = events.run(stop.signal);
  const world = {
    fenced: false,
    clock,
    cluster,
    executors,
    warnings,
    events,
    /** Lets everything that needs no time happen. */
    async settled() {
      for (let turn = 0; turn < 5; turn++) await setImmediate();
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
    },
  };
  return world;
}

Deno.test("createPodEvents() tells what happens to an executor, each kind once", async () => {
  await using world = setup();
  const { events, cluster } = world;
  for (const event of ["executor_created", "identity_bound", "identity_bound"] as const) {
    events.write(entryOf(event));
  }
  events.write(entryOf("backend_pending"));
  events.write(entryOf("lost", "OOMKilled\nmore"));
  await world.settled();
  assert.deepEqual(cluster.events, [
    {
      pod: "ci-1",
      uid: "uid-1",
      type: "Normal",
      reason: "ExecutorMade",
      message: `made for ${ID}`,
    },
    {
      pod: "ci-1",
      uid: "uid-1",
      type: "Normal",
      reason: "IdentityBound",
      message: `has the identity of ${ID}`,
    },
    {
      pod: "ci-1",
      uid: "uid-1",
      type: "Warning",
      reason: "ExecutorLost",
      message: `was lost with ${ID}: OOMKilled more`,
    },
  ]);
});

Deno.test("createPodEvents() finds an executor that the ledger learns of after its making", async () => {
  await using world = setup();
  const id = idOf("2");
  world.events.write(entryOf("executor_created", null, id));
  world.executors.set(id, { ...WHO, uid: "uid-2" });
  await world.settled();
  assert.deepEqual(world.cluster.events.map(({ uid }) => uid), ["uid-2"]);
});

Deno.test("createPodEvents() leaves out what has no executor, and other backends", async () => {
  await using world = setup();
  world.events.write(entryOf("parked", null, idOf("3")));
  world.events.write({ ...entryOf("running"), backend: "vm" });
  await world.settled();
  assert.deepEqual(world.cluster.events, []);
});

Deno.test("createPodEvents() pauses after a failure, complains once, and drops what is too much", async () => {
  await using world = setup();
  const { events, cluster, clock, warnings } = world;
  cluster.faults.failing.set("emitPodEvent", new ClusterError("forbidden", "no"));
  events.write(entryOf("executor_created"));
  await world.settled();
  for (let n = 0; n < 300; n++) events.write(entryOf("running", null, idOf(String(n + 10))));
  events.write(entryOf("identity_bound"));
  assert.deepEqual(warnings.map(({ message }) => message), [
    "events of executors cannot be written",
  ]);
  cluster.faults.failing.clear();
  await clock.advance(5_000);
  await world.settled();
  assert.deepEqual(warnings.at(-1), {
    message: "events of executors were dropped",
    fields: { dropped: 45 },
  });
  assert.deepEqual(cluster.events, [], "neither the one that failed nor those without executor");
  events.write(entryOf("runner_claimed"));
  await world.settled();
  assert.deepEqual(cluster.events.map(({ reason }) => reason), ["JobClaimed"]);
});

Deno.test("createPodEvents() writes nothing while we may not act", async () => {
  await using world = setup();
  world.fenced = true;
  world.events.write(entryOf("executor_created"));
  await world.settled();
  assert.deepEqual(world.cluster.calls, []);
  assert.equal(world.warnings.length, 1);
});
