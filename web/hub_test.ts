import assert from "node:assert/strict";
import { createFakeClock } from "../lib/fake_clock.ts";
import { fc } from "../tests/support/property.ts";
import { createHub, type Hub } from "./hub.ts";

const EPOCH = 1_800_000_000_000;

function setup(
  options: { ringSize?: number; ringBytes?: number; queueSize?: number; maxClients?: number } = {},
) {
  const clock = createFakeClock();
  return { clock, hub: createHub({ clock }, { epoch: EPOCH, ...options }) };
}

interface Event {
  readonly id: string | null;
  readonly event: string;
  readonly data: unknown;
}

/** A client that reads what there is. */
function client(hub: Hub, lastEventId: string | null = null) {
  const stream = hub.connect(lastEventId, () => ({ snapshot: true }));
  assert.ok(stream);
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let text = "";
  return {
    reader,
    /** Reads one chunk; returns its events. */
    async read(): Promise<Event[]> {
      const { value, done } = await reader.read();
      assert.equal(done, false);
      text += decoder.decode(value, { stream: true });
      const end = text.lastIndexOf("\n\n") + 2;
      const whole = text.slice(0, end);
      text = text.slice(end);
      return whole.split("\n\n").filter((part) => part.includes("data: ")).map(parse);
    },
  };
}

function parse(block: string): Event {
  const field = (name: string) =>
    block.split("\n").find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
  return {
    id: field("id") ?? null,
    event: field("event") ?? "",
    data: JSON.parse(field("data") ?? "null"),
  };
}

Deno.test("connect() sends a snapshot first when there is no last id", async () => {
  const { hub } = setup();
  hub.publish("backend", 1);
  const viewer = client(hub);
  assert.deepEqual(await viewer.read(), [
    { id: `${EPOCH}-1`, event: "snapshot", data: { snapshot: true } },
  ]);
  await viewer.reader.cancel();
  assert.equal(hub.clients, 0);
  await hub[Symbol.asyncDispose]();
});

Deno.test("connect() replays no more bytes than the ring may hold", async () => {
  const { hub } = setup({ ringBytes: 10_000 });
  for (let index = 0; index < 100; index++) hub.publish("backend", "x".repeat(950));
  for (const [seen, events] of [[89, "snapshot"], [90, "backend"]] as const) {
    const viewer = client(hub, `${EPOCH}-${seen}`);
    const first = await viewer.read();
    assert.deepEqual([first[0]?.event, first.length], [events, events === "backend" ? 10 : 1]);
    await viewer.reader.cancel();
  }
  hub.publish("backend", "x".repeat(20_000));
  const viewer = client(hub, `${EPOCH}-100`);
  assert.deepEqual((await viewer.read()).map(({ event }) => event), ["snapshot"]);
  await viewer.reader.cancel();
  await hub[Symbol.asyncDispose]();
});

Deno.test("connect() replays exactly what came after the last id, in order, at any cut", async () => {
  await fc.assert(fc.asyncProperty(
    fc.array(fc.jsonValue(), { maxLength: 60 }),
    fc.nat(60),
    fc.integer({ min: 1, max: 40 }),
    async (values, seen, ringSize) => {
      const { hub } = setup({ ringSize });
      for (const value of values) hub.publish("assignment", value);
      const viewer = client(hub, `${EPOCH}-${seen}`);
      hub.publish("assignment", "later");
      const first = await viewer.read();
      const kept = Math.min(ringSize, values.length);
      // JSON has no -0: compare what went over the wire.
      const wire = (list: readonly unknown[]): unknown => JSON.parse(JSON.stringify(list));
      if (seen > values.length || seen < values.length - kept) {
        assert.deepEqual(first.map(({ event }) => event), ["snapshot"]);
      } else {
        assert.deepEqual(wire(first.map(({ data }) => data)), wire(values.slice(seen)));
        assert.deepEqual(
          first.map(({ id }) => id),
          values.slice(seen).map((_, i) => `${EPOCH}-${seen + i + 1}`),
        );
      }
      const [next] = await viewer.read();
      assert.equal(next?.id, `${EPOCH}-${values.length + 1}`);
      await viewer.reader.cancel();
      await hub[Symbol.asyncDispose]();
    },
  ));
});

Deno.test("connect() sends a snapshot when the last id is another process's or no id at all", async () => {
  const { hub } = setup();
  hub.publish("leader", 1);
  for (const id of [`${EPOCH - 1}-1`, "1", "-", "x-1", `${EPOCH}-1-2`, `${EPOCH}--1`]) {
    const viewer = client(hub, id);
    assert.equal((await viewer.read())[0]?.event, "snapshot", id);
    await viewer.reader.cancel();
  }
  await hub[Symbol.asyncDispose]();
});

Deno.test("publish() cuts a client that does not read, and no other", async () => {
  const { hub } = setup({ queueSize: 8 });
  const slow = client(hub);
  const quick = client(hub);
  await quick.read();
  for (let i = 0; i < 20; i++) {
    hub.publish("assignment", i);
    assert.equal((await quick.read())[0]?.data, i);
  }
  assert.equal(hub.clients, 1);
  assert.equal((await slow.reader.read()).done, true);
  await quick.reader.cancel();
  await hub[Symbol.asyncDispose]();
});

Deno.test("a client that was cut comes back without a gap", async () => {
  const { hub } = setup({ queueSize: 4 });
  const slow = client(hub, `${EPOCH}-0`);
  await slow.read();
  for (let i = 1; i <= 3; i++) hub.publish("assignment", i);
  const got = await slow.read();
  for (let i = 4; i <= 30; i++) hub.publish("assignment", i);
  assert.equal((await slow.reader.read()).done, true);
  const back = client(hub, got.at(-1)?.id ?? null);
  const rest = await back.read();
  assert.deepEqual(rest.map(({ data }) => data), Array.from({ length: 29 }, (_, i) => i + 2));
  await back.reader.cancel();
  await hub[Symbol.asyncDispose]();
});

Deno.test("connect() refuses more clients than it takes, and any after its end", async () => {
  const { hub } = setup({ maxClients: 2 });
  const first = client(hub);
  const second = client(hub);
  assert.equal(hub.connect(null, () => null), undefined);
  await first.reader.cancel();
  const third = client(hub);
  await hub[Symbol.asyncDispose]();
  assert.equal(hub.connect(null, () => null), undefined);
  for (const { reader } of [second, third]) {
    assert.equal((await reader.read()).done, true);
  }
});

Deno.test("hub sends a comment every 15 s so that proxies keep the stream", async () => {
  const { hub, clock } = setup();
  const viewer = client(hub);
  await viewer.read();
  await clock.advance(15_000);
  const { value } = await viewer.reader.read();
  assert.equal(new TextDecoder().decode(value), ": ka\n\n");
  await viewer.reader.cancel();
  await hub[Symbol.asyncDispose]();
  assert.equal(clock.pending, 0);
});

Deno.test("sendTransient() reaches clients without an id and is not replayed", async () => {
  const { hub } = setup();
  const viewer = client(hub);
  await viewer.read();
  hub.sendTransient("status", { a: 1 });
  assert.deepEqual(await viewer.read(), [{ id: null, event: "status", data: { a: 1 } }]);
  assert.equal(hub.lastId, `${EPOCH}-0`);
  await viewer.reader.cancel();
  await hub[Symbol.asyncDispose]();
});

Deno.test("publish() keeps a value with line breaks in one message", async () => {
  const { hub } = setup();
  const viewer = client(hub);
  await viewer.read();
  hub.publish("assignment", "a\n\nevent: forged\ndata: x\r\n");
  assert.deepEqual((await viewer.read()).map(({ data }) => data), [
    "a\n\nevent: forged\ndata: x\r\n",
  ]);
  await viewer.reader.cancel();
  await hub[Symbol.asyncDispose]();
});
