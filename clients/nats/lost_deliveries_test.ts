import assert from "node:assert/strict";
import type { StoredMessage } from "../../controller/queue.ts";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import type { NatsConnection } from "./connection.ts";
import { bringBackLost, createHeld } from "./lost_deliveries.ts";

const call = { signal: new AbortController().signal };

/** A consumer whose counts the test says; the n-th look gets the n-th of them, then the last one. */
async function looked(counts: readonly number[], sequences: readonly number[]): Promise<number> {
  const clock = createFakeClock();
  const held = createHeld();
  for (const sequence of sequences) held.take(message(sequence));
  const stop = new AbortController();
  let [looks, resets] = [0, 0];
  let reconnect = () => {};
  const connection: Pick<NatsConnection, "onConnect"> = {
    onConnect: (listener) => void (reconnect = listener),
  };
  const running = bringBackLost({
    connection,
    backend: "pod",
    held,
    clock,
    logger: silentLogger,
    ackPending: () => Promise.resolve(counts[Math.min(looks++, counts.length - 1)] ?? 0),
    reset: () => Promise.resolve(void resets++),
  }, stop.signal);
  await clock.advance(20_000);
  assert.equal(looks, 0, "nothing is looked at before a reconnect");
  reconnect();
  await clock.advance(20_000);
  stop.abort(new DOMException("Stopped", "AbortError"));
  await assert.rejects(running);
  return resets;
}

function message(sequence: number): StoredMessage {
  return {
    id: `gitea-task-${sequence}` as StoredMessage["id"],
    backend: "pod",
    data: new Uint8Array(),
    headers: {},
    sequence,
    storedAt: 0,
    deliveries: 1,
    ack: () => Promise.resolve(),
    terminate: () => Promise.resolve(),
    nak() {},
    inProgress() {},
  };
}

Deno.test("bringBackLost() makes the consumer again, once, when more is under way than is held", async () => {
  assert.equal(await looked([1], []), 1);
  assert.equal(await looked([3], [1, 2]), 1);
});

Deno.test("bringBackLost() leaves a consumer alone whose messages are all held", async () => {
  assert.equal(await looked([0], []), 0);
  assert.equal(await looked([2], [1, 2]), 0);
  assert.equal(await looked([1], [1, 2]), 0, "the server forgot one: it brings it by itself");
});

Deno.test("bringBackLost() does not take a message that is on its way for a lost one", async () => {
  assert.equal(await looked([1, 0, 1, 0, 0], []), 0);
  assert.equal(await looked([0, 0, 1, 1, 0], []), 1);
});

Deno.test("take() counts a message until its final word, however often it comes", async () => {
  const held = createHeld();
  const [one, again, two] = [held.take(message(1)), held.take(message(1)), held.take(message(2))];
  held.take(message(3));
  assert.equal(held.count(), 3);
  again.nak(1_000);
  assert.equal(held.count(), 3, "given back is still under way for the server");
  await one.ack(call);
  await two.terminate("not an assignment id", call);
  held.forget(3);
  assert.equal(held.count(), 0);
});
