import assert from "node:assert/strict";
import { createFakeClock, type FakeClock } from "../../lib/fake_clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { createFakeLeaderKey, type FakeLeaderKey } from "../../tests/fakes/leader_key.ts";
import { createSoloLeader } from "./solo_leader.ts";

function setup() {
  const clock = createFakeClock();
  const key = createFakeLeaderKey();
  return { clock, key };
}

/** One controller that contends; `frozen` stops its clock from waking it, as SIGSTOP does. */
function contender(
  { clock, key }: { readonly clock: FakeClock; readonly key: FakeLeaderKey },
  self: string,
  place: string | null = null,
) {
  const stop = new AbortController();
  const lost: string[] = [];
  let leading = false;
  const leader = createSoloLeader({
    key: key.seenBy(self),
    clock,
    logger: silentLogger,
    self,
    place,
    onLost: (detail) => void lost.push(detail),
  });
  const running = (async () => {
    await leader.acquire(stop.signal);
    leading = true;
    await leader.hold(stop.signal);
    leading = false;
  })().catch((error) => {
    if (!stop.signal.aborted) throw error;
  });
  return {
    leader,
    lost,
    leading: () => leading,
    /** The process is gone: nothing is given back. */
    async kill() {
      stop.abort();
      await running;
    },
    async end() {
      stop.abort();
      await running;
      await leader[Symbol.asyncDispose]();
    },
  };
}

Deno.test("acquire() leads at once when nobody does", async () => {
  const world = setup();
  const first = contender(world, "a");
  await world.clock.advance(0);
  assert.ok(first.leading());
  assert.equal(first.leader.status().holder, "a");
  await first.end();
  assert.equal(world.key.value(), undefined);
  assert.equal(world.clock.pending, 0);
});

Deno.test("acquire() waits as long as another one lives, and leads at once when that one stops", async () => {
  const world = setup();
  const first = contender(world, "a");
  await world.clock.advance(0);
  const second = contender(world, "b");
  await world.clock.advance(120_000);
  assert.ok(first.leading());
  assert.ok(!second.leading());
  const { holder, leading } = second.leader.status();
  assert.deepEqual({ holder, leading }, { holder: "a", leading: false });
  await first.end();
  await world.clock.advance(100);
  assert.ok(second.leading());
  assert.deepEqual(first.lost, []);
  await second.end();
});

Deno.test("acquire() replaces a leader that crashed within 20 s", async () => {
  const world = setup();
  const first = contender(world, "a");
  await world.clock.advance(0);
  const second = contender(world, "b");
  await world.clock.advance(33_000);
  await first.kill();
  await world.clock.advance(9_000);
  assert.ok(!second.leading());
  await world.clock.advance(11_000);
  assert.ok(second.leading());
  await second.end();
});

Deno.test("acquire() does not wait for one of its own place", async () => {
  const world = setup();
  const first = contender(world, "a", "state-1");
  await world.clock.advance(0);
  await first.kill();
  const second = contender(world, "b", "state-1");
  await world.clock.advance(0);
  assert.ok(second.leading());
  const third = contender(world, "c", "state-2");
  await world.clock.advance(60_000);
  assert.ok(!third.leading());
  await second.end();
  await third.end();
});

Deno.test("acquire() takes a store that was away for no proof of death", async () => {
  const world = setup();
  const first = contender(world, "a");
  await world.clock.advance(0);
  const second = contender(world, "b");
  await world.clock.advance(2_000);
  world.key.away("a", true);
  world.key.away("b", true);
  await world.clock.advance(60_000);
  world.key.away("b", false);
  await world.clock.advance(10_000);
  world.key.away("a", false);
  await world.clock.advance(60_000);
  assert.ok(first.leading());
  assert.ok(!second.leading());
  assert.deepEqual(first.lost, []);
  await first.end();
  await second.end();
});

Deno.test("hold() ends when another one leads, and gives nothing back then", async () => {
  const world = setup();
  const first = contender(world, "a");
  await world.clock.advance(0);
  world.key.away("a", true);
  const second = contender(world, "b");
  await world.clock.advance(20_000);
  assert.ok(second.leading());
  assert.deepEqual(first.lost, []);
  world.key.away("a", false);
  await world.clock.advance(0);
  assert.deepEqual(first.lost, ['"b" leads, with the same registration']);
  await first.end();
  assert.equal(world.key.value()?.holder, "b");
  await second.end();
});

Deno.test("hold() hears at once of one that took the key by force", async () => {
  const world = setup();
  const first = contender(world, "a", "copied");
  await world.clock.advance(1_500);
  const second = contender(world, "b", "copied");
  await world.clock.advance(0);
  assert.ok(second.leading());
  assert.equal(first.lost.length, 1);
  await first.end();
  await second.end();
});

Deno.test("check() refuses to act after a freeze until the store has said who leads", async () => {
  const world = setup();
  const first = contender(world, "a");
  await world.clock.advance(5_500);
  first.leader.check();
  // Time goes on, but nothing of this process runs.
  world.key.away("a", true);
  world.clock.leap(9_000);
  assert.throws(() => first.leader.check(), /was stopped/);
  await world.clock.advance(3_000);
  assert.throws(() => first.leader.check(), /was stopped/);
  world.key.away("a", false);
  await world.clock.advance(0);
  first.leader.check();
  await first.end();
});

Deno.test("check() holds while the store is away: nobody else can lead there", async () => {
  const world = setup();
  const first = contender(world, "a");
  await world.clock.advance(0);
  world.key.away("a", true);
  await world.clock.advance(600_000);
  first.leader.check();
  assert.ok(first.leading());
  world.key.away("a", false);
  await first.end();
});

Deno.test("dispose gives up within a second when the store is away", async () => {
  const world = setup();
  const first = contender(world, "a");
  await world.clock.advance(0);
  world.key.away("a", true);
  const ended = first.end();
  await world.clock.advance(1_000);
  await ended;
  assert.equal(world.key.value()?.holder, "a");
});
