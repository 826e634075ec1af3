import assert from "node:assert/strict";
import { createBucket } from "../../clients/nats/bucket.ts";
import { createQueue } from "../../clients/nats/queue.ts";
import { createRecords } from "../../clients/nats/records.ts";
import type { TaskId } from "../../controller/model/ids.ts";
import { QueueError } from "../../controller/queue.ts";
import { call } from "../support/calls.ts";
import { eventually } from "../support/eventually.ts";
import { DEPS, NAMES, openNatsWorld } from "../support/nats_world.ts";
import { bodyOf, idOf, startTaker } from "./queue_suite.ts";
import { recordOf } from "./records_suite.ts";

const open = () => openNatsWorld({ jetstreamSync: "always" });

Deno.test("queue: kill -9 of the server loses nothing, and order and permits hold", async () => {
  await using world = await open();
  const queue = createQueue(world.connection, { ...NAMES, ...DEPS, ackWaitMs: 2_000 });
  const total = 30;
  const acked = new Set<string>();
  const publishAll = async () => {
    for (let n = 1; n <= total; n++) {
      const message = { id: idOf(n), backend: "pod" as const, data: bodyOf(n), headers: {} };
      // What the scheduler does: the publish is repeated until it is confirmed.
      await eventually(
        () => queue.publish(message, call).then(() => true, () => false),
        { what: `publish ${n}`, timeoutMs: 20_000 },
      );
    }
  };
  await using taker = startTaker(queue, { capacity: 3 });
  let outage: Promise<void> | undefined;
  const breakServer = async () => {
    await world.nats.kill9();
    await world.nats.restart();
  };
  const work = async () => {
    for (let at = 0; acked.size < total; at++) {
      await taker.until(at + 1, 30_000);
      const message = taker.taken[at];
      const counts = await queue.counts("pod", call);
      assert.ok(counts.numAckPending <= 3, `${counts.numAckPending} in hand`);
      await message?.ack(call);
      acked.add(message?.id ?? "");
      taker.free();
      if (acked.size === 10) outage ??= breakServer();
    }
  };
  await Promise.all([publishAll(), work()]);
  await outage;
  assert.equal(acked.size, total);
  // First deliveries came in stream order.
  const firsts = [...new Set(taker.taken.map(({ id }) => id))];
  assert.deepEqual(firsts, Array.from({ length: total }, (_, i) => idOf(i + 1)));
  assert.deepEqual(await queue.list("pod", { fromSequence: 1, limit: 10 }, call), []);
});

Deno.test("queue: consume() goes on within 10 s of a server's restart, and at once here", async () => {
  await using world = await open();
  const queue = createQueue(world.connection, { ...NAMES, ...DEPS });
  await using taker = startTaker(queue, { capacity: 50 });
  for (let round = 1; round <= 3; round++) {
    await world.nats.kill9();
    await world.nats.restart();
    const started = performance.now();
    await eventually(
      () =>
        queue.publish({ id: idOf(round), backend: "pod", data: bodyOf(round), headers: {} }, call)
          .then(() => true),
      { what: "publish after the restart", timeoutMs: 10_000 },
    );
    await taker.until(round, 10_000);
    assert.ok(performance.now() - started < 10_000);
    await taker.taken[round - 1]?.ack(call);
    taker.free();
  }
});

Deno.test("queue: ack() waits out an outage and then removes the message", async () => {
  await using world = await open();
  const queue = createQueue(world.connection, { ...NAMES, ...DEPS });
  await queue.publish({ id: idOf(1), backend: "pod", data: bodyOf(1), headers: {} }, call);
  await using taker = startTaker(queue, { capacity: 1 });
  const [message] = await taker.until(1);
  await world.nats.kill9();
  let done = false;
  const ack = message?.ack(call).then(() => done = true);
  const stopped = new AbortController();
  const abandoned = message?.ack({ signal: stopped.signal });
  stopped.abort(new Error("stopped by the test"));
  await assert.rejects(abandoned ?? Promise.resolve(), /stopped by the test/);
  assert.equal(done, false);
  await world.nats.restart();
  await ack;
  assert.deepEqual(await queue.list("pod", { fromSequence: 1, limit: 10 }, call), []);
});

Deno.test("queue: publish() of a stored message whose answer was lost is a duplicate", async () => {
  await using world = await open();
  const queue = createQueue(world.connection, { ...NAMES, ...DEPS });
  const message = { id: idOf(1), backend: "pod", data: bodyOf(1), headers: {} } as const;
  const first = await queue.publish(message, call);
  await world.nats.kill9();
  await assert.rejects(
    queue.publish({ ...message, id: idOf(2) }, { signal: AbortSignal.timeout(300) }),
  );
  await world.nats.restart();
  await world.connection.ready(call);
  // Not acknowledged yet: the server still knows the id.
  const again = await eventually(() => queue.publish(message, call), { what: "publish" });
  assert.deepEqual(again, { ...first, duplicate: true });
});

Deno.test("queue: publish() says that the stream is full", async () => {
  await using world = await open();
  const queue = createQueue(world.connection, { ...NAMES, ...DEPS });
  const { signal } = call;
  await world.connection.wire.request(
    `$JS.API.STREAM.UPDATE.${NAMES.stream}`,
    new TextEncoder().encode(JSON.stringify({
      name: NAMES.stream,
      subjects: [`${NAMES.subjectBase}.*`],
      retention: "workqueue",
      storage: "file",
      discard: "new",
      max_msgs: 1,
      allow_direct: true,
      duplicate_window: 600_000_000_000,
      num_replicas: 1,
    })),
    { signal },
  );
  await queue.publish({ id: idOf(1), backend: "pod", data: bodyOf(1), headers: {} }, call);
  await assert.rejects(
    queue.publish({ id: idOf(2), backend: "pod", data: bodyOf(2), headers: {} }, call),
    (error) => error instanceof QueueError && error.code === "full" && error.retryable,
  );
});

Deno.test("records: writes wait out an outage and know their own lost answers", async () => {
  await using world = await open();
  using records = createRecords(world.connection, DEPS);
  const task = "1" as TaskId;
  const made = await records.create(task, recordOf(), call);
  await world.nats.kill9();
  const update = records.update(task, recordOf({ failures: 1 }), made.revision, call);
  await world.nats.restart();
  const updated = await update;
  assert.equal((await records.get(task, call))?.revision, updated.revision);
  const bucket = createBucket(world.connection, DEPS);
  assert.equal((await bucket.get("task.1", call))?.value.failures, 1);
});
