import assert from "node:assert/strict";
import { askApi, demandApi } from "../../clients/nats/api.ts";
import { createQueue } from "../../clients/nats/queue.ts";
import { DEPS, NAMES, openNatsWorld } from "../support/nats_world.ts";
import { bodyOf, idOf, queueContract, startTaker } from "./queue_suite.ts";

queueContract("NATS queue", async () => {
  const world = await openNatsWorld();
  return {
    queue: createQueue(world.connection, { ...NAMES, ...DEPS }),
    async deleteConsumer(backend) {
      const path = `CONSUMER.DELETE.${NAMES.stream}.${backend}`;
      await askApi(world.connection, { path }, { signal: AbortSignal.timeout(5_000) });
    },
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
});

Deno.test("NATS queue: list() reads one by one from a server without batches", async () => {
  await using world = await openNatsWorld();
  const call = { signal: AbortSignal.timeout(20_000) };
  const facts = { maxPayload: 1_048_576, version: "2.10.29" };
  const queue = createQueue({ ...world.connection, facts: () => facts }, { ...NAMES, ...DEPS });
  for (let n = 1; n <= 5; n++) {
    const backend = n === 3 ? "vm" : "pod";
    await queue.publish({ id: idOf(n), backend, data: bodyOf(n), headers: {} }, call);
  }
  const listed = await queue.list("pod", { fromSequence: 2, limit: 2 }, call);
  assert.deepEqual(listed.map(({ id }) => id), [idOf(2), idOf(4)]);
  const rest = await queue.list("pod", { fromSequence: 5, limit: 100 }, call);
  assert.deepEqual(rest.map(({ id }) => id), [idOf(5)]);
});

Deno.test("NATS queue: consume() replaces a consumer that somebody made otherwise", async () => {
  await using world = await openNatsWorld();
  const call = { signal: AbortSignal.timeout(20_000) };
  await demandApi(world.connection, {
    path: `CONSUMER.CREATE.${NAMES.stream}.pod.${NAMES.subjectBase}.pod`,
    body: {
      stream_name: NAMES.stream,
      config: {
        name: "pod",
        durable_name: "pod",
        filter_subject: `${NAMES.subjectBase}.pod`,
        ack_policy: "explicit",
        deliver_policy: "all",
        max_waiting: 7,
        max_deliver: 1,
      },
    },
    action: "Make",
  }, call);
  const queue = createQueue(world.connection, { ...NAMES, ...DEPS });
  await queue.publish({ id: idOf(1), backend: "pod", data: bodyOf(1), headers: {} }, call);
  await using taker = startTaker(queue, { capacity: 1 });
  const [message] = await taker.until(1);
  const info = await demandApi(world.connection, {
    path: `CONSUMER.INFO.${NAMES.stream}.pod`,
    action: "Look",
  }, call);
  const config = info.config as Record<string, unknown>;
  assert.equal(config.max_deliver, -1);
  assert.equal(config.ack_wait, 45_000_000_000);
  assert.equal(config.max_ack_pending, 10_000);
  await message?.ack(call);
});
