import assert from "node:assert/strict";
import { createFakeClock, type FakeClock } from "../../lib/fake_clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { createFakeSignOutStore } from "../../tests/fakes/sign_outs.ts";
import { QueueError } from "../queue.ts";
import { createSignOuts, type SignOutStore } from "./sign_outs.ts";

const HOUR = 3_600_000;

/** A replica that shares with others by `store`. */
function replica(clock: FakeClock, store: SignOutStore) {
  const signOuts = createSignOuts({ clock, logger: silentLogger });
  const sharing = signOuts.share(store);
  return { ...signOuts, [Symbol.asyncDispose]: () => sharing[Symbol.asyncDispose]() };
}

Deno.test("end() holds at every replica, and at one that starts later", async () => {
  const clock = createFakeClock();
  const store = createFakeSignOutStore();
  const endsAt = clock.now() + 8 * HOUR;
  {
    await using one = replica(clock, store);
    await using other = replica(clock, store);
    await clock.advance(1);
    assert.equal(other.has("a", endsAt), false);
    assert.equal(await one.end("a", endsAt), "shared");
    await clock.advance(1);
    assert.equal(other.has("a", endsAt), true);
    assert.equal(other.has("b", endsAt), false);
  }
  await using later = replica(clock, store);
  await clock.advance(1);
  assert.equal(later.has("a", endsAt), true);
});

Deno.test("end() holds here at once while the store is away, says so, and is shared when it is back", async () => {
  const clock = createFakeClock();
  const store = createFakeSignOutStore();
  const endsAt = clock.now() + 8 * HOUR;
  await using one = replica(clock, store);
  await using other = replica(clock, store);
  await clock.advance(1);
  store.away(true);
  const reach = one.end("a", endsAt);
  assert.equal(one.has("a", endsAt), true);
  await clock.advance(1_999);
  let told = false;
  reach.then(() => told = true);
  await clock.advance(0);
  assert.equal(told, false);
  await clock.advance(1);
  assert.equal(await reach, "here");
  assert.equal(other.has("a", endsAt), false);
  store.away(false);
  await clock.advance(1);
  assert.equal(other.has("a", endsAt), true);
});

Deno.test("end() before the store is there is here alone, and shared as soon as it is", async () => {
  const clock = createFakeClock();
  const store = createFakeSignOutStore();
  const endsAt = clock.now() + 8 * HOUR;
  const signOuts = createSignOuts({ clock, logger: silentLogger });
  assert.equal(await signOuts.end("a", endsAt), "here");
  await using _sharing = signOuts.share(store);
  await clock.advance(1);
  assert.deepEqual([...store.stored().ended], [["a", endsAt]]);
});

Deno.test("sign-outs of two replicas at the same moment are both kept", async () => {
  const clock = createFakeClock();
  const store = createFakeSignOutStore();
  const endsAt = clock.now() + HOUR;
  await using one = replica(clock, store);
  await using other = replica(clock, store);
  await clock.advance(1);
  const reaches = await Promise.all([one.end("a", endsAt), other.end("b", endsAt)]);
  await clock.advance(1);
  assert.deepEqual(reaches, ["shared", "shared"]);
  assert.deepEqual([...store.stored().ended.keys()].toSorted(), ["a", "b"]);
  assert.equal(one.has("b", endsAt) && other.has("a", endsAt), true);
});

Deno.test("a list that was lost is written again by whoever remembers it", async () => {
  const clock = createFakeClock();
  const store = createFakeSignOutStore();
  const endsAt = clock.now() + HOUR;
  await using one = replica(clock, store);
  await clock.advance(1);
  await one.end("a", endsAt);
  store.lose();
  await clock.advance(60_000);
  assert.equal(store.stored().ended.has("a"), true);
});

Deno.test("an entry goes soon after its session would have ended by itself", async () => {
  const clock = createFakeClock();
  const store = createFakeSignOutStore();
  await using one = replica(clock, store);
  await clock.advance(1);
  await one.end("a", clock.now() + HOUR);
  // A replica whose clock is behind still takes that session.
  await clock.advance(HOUR + 500_000);
  assert.equal(store.stored().ended.has("a"), true);
  await clock.advance(200_000);
  assert.equal(store.stored().ended.size, 0);
});

Deno.test("a full list lets nobody in again: older sessions than those it has no room for are over", async () => {
  const clock = createFakeClock();
  const store = createFakeSignOutStore();
  await using one = replica(clock, store);
  await using other = replica(clock, store);
  await clock.advance(1);
  const first = clock.now() + HOUR;
  const ends = Array.from({ length: 5_003 }, (_, i) => one.end(`h${i}`, first + i));
  await clock.advance(2_000);
  await Promise.all(ends);
  await clock.advance(60_000);
  assert.equal(store.stored().ended.size, 5_000);
  for (const { has } of [one, other]) {
    for (let i = 0; i < 5_003; i += 1) assert.equal(has(`h${i}`, first + i), true, String(i));
    // Nobody's entry, but it cannot be told from those that had to go.
    assert.equal(has("x", first), true);
    assert.equal(has("x", first + 5_003), false);
  }
});

Deno.test("a store that refuses is tried again, and what it was not told stays here", async () => {
  const clock = createFakeClock();
  const store = createFakeSignOutStore();
  let refuses = true;
  await using one = replica(clock, {
    ...store,
    write: (list, call) =>
      refuses
        ? Promise.reject(new QueueError("refused", "Write: not allowed"))
        : store.write(list, call),
  });
  await clock.advance(1);
  const endsAt = clock.now() + HOUR;
  const reach = one.end("a", endsAt);
  await clock.advance(2_000);
  assert.equal(await reach, "here");
  assert.equal(one.has("a", endsAt), true);
  refuses = false;
  await clock.advance(60_000);
  assert.equal(store.stored().ended.has("a"), true);
});
