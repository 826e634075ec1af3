import assert from "node:assert/strict";
import { createQueue } from "../../clients/nats/queue.ts";
import { systemClock } from "../../lib/clock.ts";
import { startNatsProxy } from "../support/nats_proxy.ts";
import { connectTo, DEPS, NAMES, openNatsWorld } from "../support/nats_world.ts";
import { bodyOf, idOf, startTaker } from "./queue_suite.ts";

const call = { signal: AbortSignal.timeout(60_000) };
/** The server writes down what it has delivered up to so much later. */
const WRITTEN_MS = 500;

Deno.test("queue: a delivery that is lost with a killed server comes again within 10 s", async () => {
  // A binary of our own: its port is behind the proxy.
  await using world = await openNatsWorld({ jetstreamSync: "always", config: "" });
  const { hostname, port } = new URL(world.nats.url);
  await using proxy = startNatsProxy({ hostname, port: Number(port) });
  await using connection = connectTo({ ...world.nats, url: proxy.url });
  await connection.ready(call);
  const queue = createQueue(connection, { ...NAMES, ...DEPS });
  const publish = (n: number) =>
    queue.publish({ id: idOf(n), backend: "pod", data: bodyOf(n), headers: {} }, call);
  await using taker = startTaker(queue, { capacity: 8 });
  await publish(1);
  const [inHand] = await taker.until(1);
  const point = proxy.hold(({ way }) => way === "delivery");
  await publish(2);
  await point.reached;
  await systemClock.sleep(WRITTEN_MS);

  await world.nats.kill9();
  point.drop();
  await world.nats.restart();
  const back = performance.now();
  while (!taker.taken.some(({ id }) => id === idOf(2))) {
    await taker.until(taker.taken.length + 1, 10_000);
  }
  assert.ok(performance.now() - back < 10_000);

  // Final words of what was in hand before are still good.
  await inHand?.ack(call);
  await taker.taken.find(({ id }) => id === idOf(2))?.ack(call);
  assert.deepEqual(await queue.list("pod", { fromSequence: 1, limit: 9 }, call), []);
  assert.deepEqual(await queue.counts("pod", call), { numPending: 0, numAckPending: 0 });
});
