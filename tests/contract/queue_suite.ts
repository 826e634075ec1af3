import assert from "node:assert/strict";
import type { AssignmentId, BackendName } from "../../controller/model/ids.ts";
import {
  type AssignmentQueue,
  type Demand,
  QueueError,
  type StoredMessage,
} from "../../controller/queue.ts";
import { abortable } from "../../lib/abortable.ts";
import { call } from "../support/calls.ts";
import { eventually } from "../support/eventually.ts";

/** A queue with the means to provoke what the suite looks at. */
export interface QueueWorld extends AsyncDisposable {
  readonly queue: AssignmentQueue;
  /** Deletes the durable consumer as an operator might. */
  deleteConsumer(backend: BackendName): Promise<void>;
}

/** The id of the n-th task of a test. */
export function idOf(n: number): AssignmentId {
  return `gitea-task-${n}` as AssignmentId;
}

/** A message body that says which one it is. */
export function bodyOf(n: number): Uint8Array {
  return new TextEncoder().encode(`body ${n}`);
}

/** A demand that a test holds in its hand. */
export function createDemand(start: number): Demand & { set(free: number): void } {
  let free = start;
  let change = Promise.withResolvers<void>();
  return {
    free: () => free,
    set(value) {
      free = value;
      change.resolve();
      change = Promise.withResolvers();
    },
    changed: (signal) => abortable(change.promise, signal),
  };
}

/**
 * Takes messages into `taken` in the background: each takes a unit of the demand until
 * {@link Taker.free} gives it back. Disposing ends the consumption.
 */
export interface Taker extends AsyncDisposable {
  readonly taken: StoredMessage[];
  readonly demand: ReturnType<typeof createDemand>;
  /** Gives a unit of the demand back. */
  free(): void;
  /** Resolves once `count` messages were taken. */
  until(count: number, timeoutMs?: number): Promise<StoredMessage[]>;
}

/** Starts a {@link Taker} with room for `capacity` messages. */
export function startTaker(
  queue: AssignmentQueue,
  options: { readonly backend?: BackendName; readonly capacity: number },
): Taker {
  const demand = createDemand(options.capacity);
  const stop = new AbortController();
  const taken: StoredMessage[] = [];
  const run = async () => {
    const call = { signal: stop.signal };
    for await (const message of queue.consume(options.backend ?? "pod", demand, call)) {
      taken.push(message);
      demand.set(demand.free() - 1);
    }
  };
  const running = run();
  return {
    taken,
    demand,
    free: () => demand.set(demand.free() + 1),
    async until(count, timeoutMs = 10_000) {
      const what = `${count} messages`;
      await eventually(() => taken.length >= count, { what, timeoutMs });
      return taken;
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
    },
  };
}

/** What every queue promises; runs on the fake and on the real server. */
export function queueContract(name: string, setup: () => Promise<QueueWorld>): void {
  const publish = (queue: AssignmentQueue, n: number, backend: BackendName = "pod") =>
    queue.publish({ id: idOf(n), backend, data: bodyOf(n), headers: { "Gdr-N": `${n}` } }, call);
  const fill = async (queue: AssignmentQueue, count: number) => {
    for (let n = 1; n <= count; n++) await publish(queue, n);
  };

  Deno.test(`${name}: publish() stores once and says so`, async () => {
    await using world = await setup();
    const first = await publish(world.queue, 1);
    assert.equal(first.duplicate, false);
    assert.deepEqual(await publish(world.queue, 1), { ...first, duplicate: true });
    const second = await publish(world.queue, 2);
    assert.ok(second.sequence > first.sequence);
    const listed = await world.queue.list("pod", { fromSequence: 1, limit: 10 }, call);
    assert.deepEqual(listed.map(({ id }) => id), [idOf(1), idOf(2)]);
  });

  Deno.test(`${name}: publish() again stores one more message of the same assignment, once`, async () => {
    await using world = await setup();
    const first = await publish(world.queue, 1);
    const again = { id: idOf(1), backend: "pod", data: bodyOf(1), headers: {}, again: 7 } as const;
    const second = await world.queue.publish(again, call);
    assert.equal(second.duplicate, false);
    assert.deepEqual(await world.queue.publish(again, call), { ...second, duplicate: true });
    await world.queue.remove(first.sequence, call);
    await using taker = startTaker(world.queue, { capacity: 2 });
    const [message] = await taker.until(1);
    assert.equal(message?.id, idOf(1));
    assert.equal(message?.sequence, second.sequence);
    await message?.ack(call);
    assert.deepEqual(await world.queue.list("pod", { fromSequence: 1, limit: 10 }, call), []);
  });

  Deno.test(`${name}: publish() refuses what is too large for the server, with both sizes`, async () => {
    await using world = await setup();
    const data = new Uint8Array(world.queue.maxPayload + 1);
    await assert.rejects(
      world.queue.publish({ id: idOf(1), backend: "pod", data, headers: {} }, call),
      (error) => error instanceof QueueError && error.code === "too_large" && !error.retryable,
    );
  });

  Deno.test(`${name}: consume() yields messages as they were stored, in stream order`, async () => {
    await using world = await setup();
    await fill(world.queue, 20);
    await using taker = startTaker(world.queue, { capacity: 20 });
    await taker.until(20);
    for (const [at, message] of taker.taken.entries()) {
      assert.equal(message.id, idOf(at + 1));
      assert.equal(message.backend, "pod");
      assert.deepEqual(message.data, bodyOf(at + 1));
      assert.equal(message.headers["Gdr-N"], `${at + 1}`);
      assert.equal(message.deliveries, 1);
      assert.ok(Math.abs(message.storedAt - Date.now()) < 60_000);
    }
    const sequences = taker.taken.map(({ sequence }) => sequence);
    assert.deepEqual(sequences, sequences.toSorted((a, b) => a - b));
  });

  Deno.test(`${name}: consume() never takes more than the demand allows`, async () => {
    await using world = await setup();
    await fill(world.queue, 12);
    await using taker = startTaker(world.queue, { capacity: 3 });
    await taker.until(3);
    for (let done = 0; done < 12; done++) {
      await taker.until(Math.min(12, done + 3));
      const counts = await world.queue.counts("pod", call);
      assert.ok(counts.numAckPending <= 3, `${counts.numAckPending} in hand`);
      await taker.taken[done]?.ack(call);
      taker.free();
    }
    assert.deepEqual(
      taker.taken.map(({ id }) => id),
      Array.from({ length: 12 }, (_, i) => idOf(i + 1)),
    );
    assert.deepEqual(await world.queue.counts("pod", call), { numPending: 0, numAckPending: 0 });
  });

  Deno.test(`${name}: consume() takes nothing without demand, and begins when there is some`, async () => {
    await using world = await setup();
    await fill(world.queue, 2);
    await using taker = startTaker(world.queue, { capacity: 0 });
    assert.deepEqual(await world.queue.counts("pod", call), { numPending: 2, numAckPending: 0 });
    assert.equal(taker.taken.length, 0);
    taker.demand.set(1);
    await taker.until(1);
    assert.deepEqual(await world.queue.counts("pod", call), { numPending: 1, numAckPending: 1 });
  });

  Deno.test(`${name}: consume() sees messages that come later, each backend its own`, async () => {
    await using world = await setup();
    await using pods = startTaker(world.queue, { capacity: 4 });
    await using vms = startTaker(world.queue, { capacity: 4, backend: "vm" });
    await publish(world.queue, 1);
    await publish(world.queue, 2, "vm");
    await Promise.all([pods.until(1), vms.until(1)]);
    assert.equal(pods.taken[0]?.id, idOf(1));
    assert.equal(vms.taken[0]?.id, idOf(2));
    assert.equal(vms.taken[0]?.backend, "vm");
  });

  Deno.test(`${name}: nak() brings the message again after the delay`, async () => {
    await using world = await setup();
    await publish(world.queue, 1);
    await using taker = startTaker(world.queue, { capacity: 1 });
    const [first] = await taker.until(1);
    const started = performance.now();
    first?.nak(300);
    taker.free();
    const [, again] = await taker.until(2);
    assert.ok(performance.now() - started >= 250);
    assert.equal(again?.id, idOf(1));
    assert.equal(again?.deliveries, 2);
  });

  Deno.test(`${name}: ack() and terminate() remove the message, also when repeated`, async () => {
    await using world = await setup();
    await fill(world.queue, 2);
    await using taker = startTaker(world.queue, { capacity: 2 });
    const [one, two] = await taker.until(2);
    await one?.ack(call);
    await one?.ack(call);
    await two?.terminate("task runs-on labels must include self-hosted", call);
    assert.deepEqual(await world.queue.list("pod", { fromSequence: 1, limit: 9 }, call), []);
    assert.deepEqual(await world.queue.counts("pod", call), { numPending: 0, numAckPending: 0 });
  });

  Deno.test(`${name}: list() shows messages from a sequence on, taken or not`, async () => {
    await using world = await setup();
    await fill(world.queue, 5);
    await publish(world.queue, 6, "vm");
    await using taker = startTaker(world.queue, { capacity: 2 });
    await taker.until(2);
    const all = await world.queue.list("pod", { fromSequence: 1, limit: 100 }, call);
    assert.deepEqual(all.map(({ id }) => id), [1, 2, 3, 4, 5].map(idOf));
    assert.deepEqual(all[2]?.data, bodyOf(3));
    assert.equal(all[2]?.headers["Gdr-N"], "3");
    const page = { fromSequence: (all[2]?.sequence ?? 0) + 1, limit: 1 };
    const [fourth, ...more] = await world.queue.list("pod", page, call);
    assert.equal(fourth?.id, idOf(4));
    assert.equal(more.length, 0);
  });

  Deno.test(`${name}: remove() takes a message away, in hand or not`, async () => {
    await using world = await setup();
    const stored = [await publish(world.queue, 1), await publish(world.queue, 2)];
    await using taker = startTaker(world.queue, { capacity: 1 });
    const [inHand] = await taker.until(1);
    for (const { sequence } of stored) await world.queue.remove(sequence, call);
    await world.queue.remove(stored[0]?.sequence ?? 0, call);
    await world.queue.remove(999_999, call);
    assert.deepEqual(await world.queue.list("pod", { fromSequence: 1, limit: 9 }, call), []);
    await inHand?.ack(call);
  });

  Deno.test(`${name}: resetConsumer() brings what is in another's hand at once`, async () => {
    await using world = await setup();
    await fill(world.queue, 2);
    let old: StoredMessage | undefined;
    {
      await using dead = startTaker(world.queue, { capacity: 1 });
      [old] = await dead.until(1);
    }
    await world.queue.resetConsumer("pod", call);
    await using taker = startTaker(world.queue, { capacity: 2 });
    await taker.until(2, 5_000);
    assert.deepEqual(taker.taken.map(({ id }) => id), [idOf(1), idOf(2)]);
    // A late word of the earlier leader is answered, too.
    await old?.ack(call);
    await eventually(
      async () => (await world.queue.list("pod", { fromSequence: 1, limit: 9 }, call)).length === 1,
      { what: "the acknowledged message to go" },
    );
  });

  Deno.test(`${name}: consume() makes a deleted consumer again`, async () => {
    await using world = await setup();
    await publish(world.queue, 1);
    await using taker = startTaker(world.queue, { capacity: 4 });
    await taker.until(1);
    await taker.taken[0]?.ack(call);
    taker.free();
    await world.deleteConsumer("pod");
    await publish(world.queue, 2);
    await taker.until(2, 10_000);
    assert.equal(taker.taken[1]?.id, idOf(2));
    await taker.taken[1]?.ack(call);
  });

  Deno.test(`${name}: consume() ends when aborted and gives back what it had not yielded`, async () => {
    await using world = await setup();
    await fill(world.queue, 4);
    const stop = new AbortController();
    const demand = createDemand(4);
    const messages: StoredMessage[] = [];
    for await (const message of world.queue.consume("pod", demand, { signal: stop.signal })) {
      messages.push(message);
      stop.abort();
    }
    assert.equal(messages.length, 1);
    await using taker = startTaker(world.queue, { capacity: 4 });
    await taker.until(3, 5_000);
    assert.deepEqual(
      taker.taken.map(({ id }) => id).toSorted(),
      [2, 3, 4].map(idOf),
    );
  });

  Deno.test(`${name}: methods reject with the signal's reason when aborted`, async () => {
    await using world = await setup();
    const reason = new Error("stopped by the test");
    const signal = AbortSignal.abort(reason);
    const same = (error: unknown) => error === reason;
    await assert.rejects(world.queue.counts("pod", { signal }), same);
    await assert.rejects(
      world.queue.publish({ id: idOf(1), backend: "pod", data: bodyOf(1), headers: {} }, {
        signal,
      }),
      same,
    );
    for await (const _message of world.queue.consume("pod", createDemand(1), { signal })) {
      assert.fail("nothing may come");
    }
  });
}
