import assert from "node:assert/strict";
import { createBucket } from "../../clients/nats/bucket.ts";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { eventually } from "../support/eventually.ts";
import { DEPS, openNatsWorld } from "../support/nats_world.ts";

Deno.test("hint() of a bucket tells again, because a write is told before it is stored", async () => {
  await using world = await openNatsWorld();
  await using watching = world.connect();
  const writer = createBucket(world.connection, DEPS);
  const clock = createFakeClock();
  const reader = createBucket(watching, { clock });
  const call = { signal: AbortSignal.timeout(20_000) };
  const stop = new AbortController();
  let hints = 0;
  reader.hint("key", () => hints += 1, stop.signal);
  await eventually(() => hints === 1, { what: "the look at the start" });
  // Its answer says that the server has the subscription that was sent before.
  assert.equal(await reader.get("key", call), undefined);

  await writer.put("key", { n: 1 }, 0, call);
  await eventually(() => hints === 2, { what: "the hint of a write" });
  await clock.advance(50);
  assert.equal(hints, 3);
  await clock.advance(450);
  assert.equal(hints, 4);

  await writer.put("key", { n: 2 }, (await writer.get("key", call))?.revision ?? 0, call);
  await eventually(() => hints === 5, { what: "the hint of the next write" });
  stop.abort();
  await clock.advance(500);
  assert.equal(hints, 5, "nothing is told after the end");
});

Deno.test("hint() of a bucket leaves nobody with the value before, written 300 times", async () => {
  await using world = await openNatsWorld();
  await using watching = world.connect();
  const writer = createBucket(world.connection, DEPS);
  const reader = createBucket(watching, DEPS);
  const call = { signal: AbortSignal.timeout(20_000) };
  const stop = new AbortController();
  const reads: Promise<void>[] = [];
  let seen: unknown;
  const look = async () => {
    const read = await reader.get("key", call);
    if (read !== undefined) seen = read.value["n"];
  };
  reader.hint("key", () => reads.push(look()), stop.signal);
  for (let n = 1, revision = 0; n <= 300; n++) {
    revision = await writer.put("key", { n }, revision, call);
    if (n % 100 === 0) await eventually(() => seen === n, { what: `value ${n} to be seen` });
  }
  stop.abort();
  await Promise.all(reads);
});
