import assert from "node:assert/strict";
import { createEventLog } from "../../clients/nats/event_log.ts";
import type { JournalEntry } from "../../controller/journal.ts";
import { call } from "../support/calls.ts";
import { DEPS, openNatsWorld } from "../support/nats_world.ts";
import { idOf } from "./queue_suite.ts";

function entry(n: number, assignment = 1): JournalEntry {
  return {
    at: n,
    event: "received",
    component: "worker",
    backend: assignment % 2 === 0 ? "vm" : "pod",
    assignment: idOf(assignment),
    executor: null,
    phase: null,
    retryDelayMs: 0,
    detail: `entry "${n}"`,
    subject: {
      repository: "acme/web",
      job: "build",
      ref: "refs/heads/<b>x</b>",
      runId: null,
      giteaUrl: null,
    },
  };
}

Deno.test("append() stores entries in order, and read() gives them back whole", async () => {
  await using world = await openNatsWorld();
  await using log = createEventLog(world.connection, DEPS);
  for (let n = 1; n <= 1_000; n++) log.append(entry(n, n % 7 + 1));
  await log.flush(call.signal);
  const all = await log.read({ limit: 2_000 }, call);
  assert.deepEqual(all.map(({ at }) => at), Array.from({ length: 1_000 }, (_, i) => i + 1));
  const { seq, ...first } = all[0] ?? { seq: 0 };
  assert.deepEqual(first, entry(1, 2));
  assert.ok(seq >= 1);
});

Deno.test("read() selects by assignment, place, number and direction", async () => {
  await using world = await openNatsWorld();
  await using log = createEventLog(world.connection, DEPS);
  for (let n = 1; n <= 20; n++) log.append(entry(n, n % 2 + 1));
  await log.flush(call.signal);
  const ats = async (query: Parameters<typeof log.read>[0]) =>
    (await log.read(query, call)).map(({ at }) => at);
  assert.deepEqual(await ats({ assignment: idOf(1), limit: 3 }), [2, 4, 6]);
  assert.deepEqual(await ats({ assignment: idOf(1), limit: 3, newestFirst: true }), [20, 18, 16]);
  assert.deepEqual(await ats({ limit: 3, newestFirst: true }), [20, 19, 18]);
  assert.deepEqual(await ats({ limit: 3, fromSeq: 17 }), [17, 18, 19]);
  assert.deepEqual(await ats({ limit: 3, fromSeq: 17, newestFirst: true }), [17, 16, 15]);
  assert.deepEqual(await ats({ limit: 9, fromSeq: 2, newestFirst: true }), [2, 1]);
  assert.deepEqual(await ats({ limit: 9, fromSeq: 99 }), []);
  assert.deepEqual(await ats({ assignment: idOf(77), limit: 9 }), []);
});

Deno.test("read() gives nothing while nothing is stored", async () => {
  await using world = await openNatsWorld();
  await using log = createEventLog(world.connection, DEPS);
  assert.deepEqual(await log.read({ limit: 5 }, call), []);
  assert.deepEqual(await log.read({ limit: 5, newestFirst: true }, call), []);
  await log.flush(call.signal);
});

Deno.test("append() keeps entries over an outage, each once", async () => {
  await using world = await openNatsWorld({ jetstreamSync: "always" });
  await using log = createEventLog(world.connection, DEPS);
  for (let n = 1; n <= 50; n++) log.append(entry(n));
  await world.nats.kill9();
  for (let n = 51; n <= 100; n++) log.append(entry(n));
  await world.nats.restart();
  await log.flush(call.signal);
  const all = await log.read({ limit: 1_000 }, call);
  assert.deepEqual(all.map(({ at }) => at), Array.from({ length: 100 }, (_, i) => i + 1));
  assert.equal(log.dropped(), 0);
});

Deno.test("append() drops the oldest when its buffer is full, and counts them", async () => {
  await using world = await openNatsWorld();
  await using log = createEventLog(world.connection, { ...DEPS, bufferSize: 10 });
  for (let n = 1; n <= 25; n++) log.append(entry(n));
  assert.equal(log.dropped(), 15);
  await log.flush(call.signal);
  const all = await log.read({ limit: 100 }, call);
  assert.deepEqual(all.map(({ at }) => at), [16, 17, 18, 19, 20, 21, 22, 23, 24, 25]);
});

Deno.test("flush() rejects with the signal's reason while the server is away", async () => {
  await using world = await openNatsWorld();
  await using log = createEventLog(world.connection, DEPS);
  await world.nats.kill9();
  log.append(entry(1));
  const reason = new Error("stopped by the test");
  const stop = new AbortController();
  const flushed = log.flush(stop.signal);
  stop.abort(reason);
  await assert.rejects(flushed, (error) => error === reason);
  await world.nats.restart();
  await log.flush(call.signal);
});
