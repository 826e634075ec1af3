import assert from "node:assert/strict";
import {
  AT_ONCE,
  contend,
  NOWHERE,
  setupLease as setup,
  wire,
} from "../../tests/support/lease_contender.ts";

Deno.test("hold() counts from the start of a renewal, however late its answer comes", async () => {
  const world = setup();
  let route = AT_ONCE;
  const a = contend(world, "a", { route: () => route });
  await world.clock.advance(30_000);
  route = { thereMs: 0, backMs: 4_000, lost: "no" };
  await world.clock.advance(2_000);
  const startedAt = world.clock.monotonic();
  await world.clock.advance(4_000);
  route = NOWHERE;
  await world.clock.advance(startedAt + 9_999 - world.clock.monotonic());
  assert.ok(a.acts());
  await world.clock.advance(1);
  assert.ok(!a.acts());
  route = AT_ONCE;
  await a.stop();
});

Deno.test("acquire() recognises its own Lease when the answer to the take-over was lost", async () => {
  const world = setup();
  const dead = contend(world, "dead");
  await world.clock.advance(0);
  dead.kill();
  let writes = 0;
  const a = contend(world, "a", {
    route: (write) => write && writes++ === 0 ? { ...AT_ONCE, lost: "stored" } : AT_ONCE,
  });
  await world.clock.advance(40_000);
  assert.ok(a.acts());
  assert.equal(world.server.lease()?.record.transitions, 1);
  await a.stop();
});

Deno.test("hold() goes on when the answers to its renewals are lost", async () => {
  const world = setup();
  let lost = 0;
  const a = contend(world, "a", {
    route: (write) => write && lost > 0 && lost-- > 0 ? { ...AT_ONCE, lost: "stored" } : AT_ONCE,
  });
  await world.clock.advance(10_000);
  const { acquireTime } = world.server.lease()?.record ?? assert.fail();
  for (let i = 0; i < 5; i++) {
    lost = 1;
    await world.clock.advance(12_000);
    assert.ok(a.acts());
  }
  assert.equal(world.server.lease()?.record.transitions, 0);
  assert.equal(world.server.lease()?.record.acquireTime, acquireTime);
  assert.deepEqual(a.lost, []);
  await a.stop();
});

Deno.test("hold() makes a deleted Lease anew at once, and goes on", async () => {
  const world = setup();
  const first = contend(world, "first");
  await world.clock.advance(0);
  await first.stop();
  const asked: string[] = [];
  const a = contend(world, "a", {
    address: "here",
    route(write) {
      asked.push(write ? "write" : "read");
      return AT_ONCE;
    },
  });
  const b = contend(world, "b");
  await world.clock.advance(11_000);
  const before = world.server.lease()?.record ?? assert.fail();
  assert.equal(before.transitions, 1);
  asked.length = 0;
  world.server.delete();
  await world.clock.advance(300);
  assert.deepEqual(asked, ["write"]); // Without a look, lest another is faster.
  const { record, annotations } = world.server.lease() ?? assert.fail();
  assert.deepEqual({ ...record, renewTime: before.renewTime }, before);
  const { "ci.ddupan.top/admin-advertise-proof": proof, ...others } = annotations;
  assert.deepEqual(others, { "ci.ddupan.top/admin-advertise": "here" });
  assert.match(proof ?? "", /^[0-9a-f]{64}$/);
  assert.ok(a.acts() && !b.acts());
  assert.deepEqual(a.lost, []);
  await a.stop();
  await b.stop();
});

Deno.test("acquire() leaves a Lease deleted under a holder alone until that one has stopped", async () => {
  const world = setup();
  const net = wire();
  const a = contend(world, "a", net);
  const b = contend(world, "b");
  await world.clock.advance(10_000);
  net.cut();
  world.server.silent = true;
  world.server.delete();
  await world.clock.advance(9_000);
  assert.ok(a.acts() && !b.acts());
  await world.clock.advance(5_000);
  assert.ok(!a.acts() && !b.acts());
  await world.clock.advance(6_000);
  assert.ok(b.acts());
  assert.equal(world.server.lease()?.record.transitions, 1);
  net.mend();
  await a.stop();
  await b.stop();
});

Deno.test("hold() ends at once when a hand has written another holder", async () => {
  const world = setup();
  const a = contend(world, "a");
  await world.clock.advance(10_000);
  world.server.edit({ holder: "somebody" });
  await world.clock.advance(0);
  assert.throws(() => a.elector.check());
  await world.clock.advance(300);
  assert.ok(!a.holds());
  assert.deepEqual(a.lost, ['"somebody" leads']);
  await a.stop();
  assert.equal(world.server.lease()?.record.holder, "somebody");
});

Deno.test("hold() takes back a Lease whose holder was cleared by hand, as a take-over", async () => {
  const world = setup();
  const a = contend(world, "a");
  await world.clock.advance(10_000);
  world.server.edit({ holder: "" });
  await world.clock.advance(300);
  assert.ok(a.acts());
  assert.equal(world.server.lease()?.record.transitions, 1);
  await a.stop();
});

Deno.test("hold() has lost when others have led and released meanwhile", async () => {
  const world = setup();
  const a = contend(world, "a");
  await world.clock.advance(10_000);
  world.server.edit({ holder: "", transitions: 1 });
  await world.clock.advance(300);
  assert.deepEqual(a.lost, ["another has led meanwhile"]);
  await a.stop();
});

Deno.test("hold() puts back what a hand has taken out of the Lease", async () => {
  const world = setup();
  const a = contend(world, "a");
  await world.clock.advance(10_000);
  world.server.edit({ durationSeconds: null, acquireTime: null });
  await world.clock.advance(300);
  assert.equal(world.server.lease()?.record.durationSeconds, 15);
  assert.notEqual(world.server.lease()?.record.acquireTime, null);
  assert.ok(a.acts());
  await a.stop();
});

Deno.test("acquire() waits a lease time of its own for a holder without a duration", async () => {
  const world = setup();
  const a = contend(world, "a");
  await world.clock.advance(0);
  a.kill();
  world.server.edit({ durationSeconds: null, renewTime: null, acquireTime: null, transitions: 7 });
  const b = contend(world, "b");
  await world.clock.advance(14_900);
  assert.ok(!b.acts());
  await world.clock.advance(600);
  assert.ok(b.acts());
  assert.equal(world.server.lease()?.record.transitions, 8);
  await b.stop();
});

Deno.test("dispose gives back a Lease whose take-over was stored without an answer", async () => {
  const world = setup();
  let first = true;
  const a = contend(world, "a", {
    route(write) {
      if (!write || !first) return AT_ONCE;
      first = false;
      return { ...AT_ONCE, lost: "stored" };
    },
  });
  await world.clock.advance(100);
  assert.equal(world.server.lease()?.record.holder, "a");
  await a.stop();
  assert.equal(world.server.lease()?.record.holder, "");
});

Deno.test("status() gives no address of ours for a holder that has said none", async () => {
  const world = setup();
  const a = contend(world, "a", { address: "here" });
  await world.clock.advance(0);
  // A contender of client-go's keeps the annotations that it finds.
  world.server.edit({ holder: "go", transitions: 1 });
  await world.clock.advance(300);
  assert.equal(a.elector.status().address, null);
  await a.stop();
});

Deno.test("hold() remembers what it heard while the answer to a renewal was on its way", async () => {
  const world = setup();
  let route = AT_ONCE;
  const a = contend(world, "a", { route: () => route });
  await world.clock.advance(9_000);
  route = { thereMs: 0, backMs: 100, lost: "no" };
  await world.clock.advance(1_050);
  world.server.edit({ holder: "somebody" });
  await world.clock.advance(60);
  assert.ok(!a.acts());
  await world.clock.advance(600);
  assert.deepEqual(a.lost, ['"somebody" leads']);
  route = AT_ONCE;
  await a.stop();
});
