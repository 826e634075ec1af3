import assert from "node:assert/strict";
import { Secret } from "../../lib/secret.ts";
import type { Route } from "../../tests/fakes/lease_server.ts";
import {
  AT_ONCE,
  contend,
  setupLease as setup,
  wire,
} from "../../tests/support/lease_contender.ts";
import { microTime } from "./lease.ts";

Deno.test("acquire() makes the Lease as client-go does when there is none", async () => {
  const world = setup();
  const at = world.clock.now();
  const a = contend(world, "host_1", { address: "10.0.0.1:8080" });
  await world.clock.advance(0);
  assert.ok(a.acts());
  const { record, annotations } = world.server.lease() ?? {};
  assert.deepEqual(record, {
    holder: "host_1",
    durationSeconds: 15,
    acquireTime: microTime(at),
    renewTime: microTime(at),
    transitions: 0,
  });
  assert.match(record.acquireTime ?? "", /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  const { "ci.ddupan.top/admin-advertise-proof": proof, ...others } = annotations ?? {};
  assert.deepEqual(others, { "ci.ddupan.top/admin-advertise": "10.0.0.1:8080" });
  assert.match(proof ?? "", /^[0-9a-f]{64}$/);
  await a.stop();
});

Deno.test("hold() renews every 2 s and keeps acquireTime and transitions", async () => {
  const world = setup();
  const a = contend(world, "a");
  await world.clock.advance(0);
  const first = world.server.lease()?.record;
  const before = world.server.requests;
  await world.clock.advance(60_000);
  assert.equal(world.server.requests - before, 30);
  const { renewTime, ...rest } = world.server.lease()?.record ?? assert.fail();
  assert.equal(renewTime, microTime(world.clock.now()));
  assert.deepEqual({ ...rest, renewTime: first?.renewTime }, first);
  assert.ok(a.acts());
  await a.stop();
});

Deno.test("dispose gives the Lease back: no holder, one second, transitions kept, address removed", async () => {
  const world = setup();
  const a = contend(world, "a", { address: "here" });
  await world.clock.advance(5_000);
  await a.stop();
  assert.ok(!a.acts());
  const now = microTime(world.clock.now());
  assert.deepEqual(world.server.lease()?.record, {
    holder: "",
    durationSeconds: 1,
    acquireTime: now,
    renewTime: now,
    transitions: 0,
  });
  assert.deepEqual(world.server.lease()?.annotations, {});
  assert.equal(world.clock.pending, 0);
});

Deno.test("acquire() takes a released Lease at once, and raises the transitions", async () => {
  const world = setup();
  const a = contend(world, "a");
  await world.clock.advance(0);
  const b = contend(world, "b");
  await world.clock.advance(60_000);
  assert.ok(a.acts() && !b.acts());
  assert.equal(b.elector.status().holder, "a");
  await a.stop();
  await world.clock.advance(300);
  assert.ok(b.acts());
  assert.equal(world.server.lease()?.record.transitions, 1);
  assert.equal(b.elector.predecessor(), "a");
  assert.equal(a.elector.predecessor(), null);
  assert.deepEqual(a.lost, []);
  await b.stop();
});

Deno.test("predecessor() is the last holder seen, though the Lease was given back and deleted", async () => {
  const world = setup();
  const a = contend(world, "a");
  await world.clock.advance(0);
  const c = contend(world, "c", { random: () => 1 });
  await world.clock.advance(10_000);
  await a.stop();
  const b = contend(world, "b");
  await world.clock.advance(5_000);
  const [leader, other] = b.acts() ? [b, c] : [c, b];
  assert.equal(c.elector.predecessor(), leader === c ? "a" : "b");
  await world.clock.advance(5_000);
  await leader.stop();
  world.server.delete();
  await world.clock.advance(20_000);
  assert.ok(other.acts());
  assert.equal(other.elector.predecessor(), leader.self);
  await other.stop();
});

Deno.test("acquire() without hints finds a released Lease within its jittered retry period", async () => {
  for (const [random, ms] of [[0, 2_000], [1, 4_400]] as const) {
    const world = setup();
    world.server.silent = true;
    const a = contend(world, "a");
    await world.clock.advance(0);
    const b = contend(world, "b", { random: () => random });
    await world.clock.advance(0);
    await a.stop();
    await world.clock.advance(ms - 1);
    assert.ok(!b.acts());
    await world.clock.advance(1);
    assert.ok(b.acts());
    await b.stop();
  }
});

Deno.test("acquire() replaces a killed holder one lease time after its last renewal was seen", async () => {
  const world = setup();
  const a = contend(world, "a");
  await world.clock.advance(0);
  const b = contend(world, "b");
  await world.clock.advance(30_000);
  a.kill();
  await world.clock.advance(14_900);
  assert.ok(!b.acts());
  await world.clock.advance(600);
  assert.ok(b.acts());
  assert.equal(world.server.lease()?.record.transitions, 1);
  assert.equal(b.elector.predecessor(), "a");
  await b.stop();
});

Deno.test("acquire() waits a whole lease time for a dead holder that it sees first now", async () => {
  const world = setup();
  const a = contend(world, "host_1");
  await world.clock.advance(0);
  a.kill();
  await world.clock.advance(3_600_000);
  // The container was restarted in its Pod: the same HOSTNAME, another process.
  const b = contend(world, "host_2");
  await world.clock.advance(14_900);
  assert.ok(!b.acts());
  await world.clock.advance(600);
  assert.ok(b.acts());
  await b.stop();
});

Deno.test("acquire() honours the duration that a dead holder wrote, not its own", async () => {
  const world = setup();
  const a = contend(world, "a");
  await world.clock.advance(0);
  a.kill();
  world.server.edit({ durationSeconds: 40 });
  const b = contend(world, "b");
  await world.clock.advance(39_900);
  assert.ok(!b.acts());
  await world.clock.advance(600);
  assert.ok(b.acts());
  assert.equal(world.server.lease()?.record.durationSeconds, 15);
  await b.stop();
});

Deno.test("acquire() does not take changed annotations for a sign of life", async () => {
  const world = setup();
  const a = contend(world, "a");
  await world.clock.advance(0);
  a.kill();
  const b = contend(world, "b");
  for (let i = 0; i < 15; i++) {
    await world.clock.advance(1_000);
    world.server.edit({});
  }
  await world.clock.advance(600);
  assert.ok(b.acts());
  await b.stop();
});

Deno.test("neither takes nor loses the lead because a wall clock is set by an hour", async () => {
  const world = setup();
  const a = contend(world, "a");
  await world.clock.advance(0);
  const b = contend(world, "b");
  for (const ms of [3_600_000, -7_200_000, 3_600_000]) {
    a.clock.jump(ms);
    await world.clock.advance(20_000);
    b.clock.jump(-ms);
    await world.clock.advance(20_000);
  }
  assert.ok(a.acts() && !b.acts());
  assert.equal(world.server.lease()?.record.transitions, 0);
  await a.stop();
  await b.stop();
});

Deno.test("hold() changes renewTime although the wall clock stands still", async () => {
  const world = setup();
  const a = contend(world, "a");
  await world.clock.advance(0);
  const b = contend(world, "b");
  for (let i = 0; i < 15; i++) {
    await world.clock.advance(2_000);
    a.clock.jump(-2_000);
  }
  assert.ok(a.acts() && !b.acts());
  await a.stop();
  await b.stop();
});

Deno.test("hold() ends 10 s after the last renewal began when the server is away, before others lead", async () => {
  const world = setup();
  const net = wire();
  const a = contend(world, "a", net);
  const b = contend(world, "b");
  await world.clock.advance(30_000);
  net.cut();
  const renewedAt = world.clock.monotonic();
  await world.clock.advance(9_900);
  assert.ok(a.acts());
  await world.clock.advance(100);
  assert.ok(!a.acts() && !a.holds());
  assert.equal(world.clock.monotonic() - renewedAt, 10_000);
  assert.equal(a.lost.length, 1);
  assert.equal(a.lost[0], "not renewed for 10 s: Reach the Lease: no answer in time");
  assert.ok(!b.acts());
  await world.clock.advance(6_000);
  assert.ok(b.acts());
  net.mend();
  await a.stop();
  assert.equal(world.server.lease()?.record.holder, "b");
  await b.stop();
});

Deno.test("hold() survives an outage shorter than the deadline", async () => {
  const world = setup();
  const net = wire();
  const a = contend(world, "a", net);
  await world.clock.advance(30_000);
  net.cut();
  await world.clock.advance(6_000);
  net.mend();
  await world.clock.advance(60_000);
  assert.ok(a.acts());
  assert.deepEqual(a.lost, []);
  await a.stop();
});

Deno.test("check() throws at once in a process that was frozen for longer than the deadline", async () => {
  const world = setup();
  const a = contend(world, "a");
  const b = contend(world, "b");
  await world.clock.advance(30_000);
  a.clock.freeze();
  await world.clock.advance(20_000);
  assert.ok(b.acts());
  assert.throws(() => a.elector.check(), /not sure to hold the Lease/);
  a.clock.thaw();
  await world.clock.advance(0);
  assert.ok(!a.holds());
  assert.equal(a.lost.length, 1);
  await a.stop();
  assert.equal(world.server.lease()?.record.holder, "b");
  await b.stop();
});

Deno.test("hold() goes on after a freeze that was shorter than the deadline", async () => {
  const world = setup();
  const a = contend(world, "a");
  const b = contend(world, "b");
  await world.clock.advance(30_000);
  a.clock.freeze();
  await world.clock.advance(9_000);
  assert.ok(a.acts());
  a.clock.thaw();
  await world.clock.advance(30_000);
  assert.ok(a.acts() && !b.acts());
  await a.stop();
  await b.stop();
});

Deno.test("acquire() asks again when it was frozen until its take-over said nothing any more", async () => {
  const world = setup();
  let route: Route = { thereMs: 0, backMs: 1_000, lost: "no" };
  const a = contend(world, "a", { route: () => route });
  await world.clock.advance(1_500);
  assert.equal(world.server.lease()?.record.holder, "a");
  a.clock.freeze();
  await world.clock.advance(12_000);
  route = { thereMs: 5, backMs: 5, lost: "no" };
  a.clock.thaw();
  assert.ok(!a.acts());
  await world.clock.advance(5_000);
  assert.ok(a.acts());
  assert.equal(world.server.lease()?.record.transitions, 0);
  route = AT_ONCE;
  await a.stop();
});

Deno.test("acquire() asks a server that is away again, and never leads meanwhile", async () => {
  const world = setup();
  const net = wire();
  net.cut();
  const a = contend(world, "a", net);
  await world.clock.advance(60_000);
  assert.ok(!a.acts());
  assert.match(a.elector.status().lastError ?? "", /no answer in time/);
  assert.ok(world.server.requests <= 12, `${world.server.requests} requests in a minute`);
  net.mend();
  await world.clock.advance(10_000);
  assert.ok(a.acts());
  assert.equal(a.elector.status().lastError, null);
  await a.stop();
});

Deno.test("acquire() looks at most four times a second, however often the Lease is written", async () => {
  const world = setup();
  const a = contend(world, "a");
  await world.clock.advance(0);
  a.kill();
  const b = contend(world, "b");
  await world.clock.advance(0);
  const before = world.server.requests;
  for (let i = 0; i < 500; i++) {
    await world.clock.advance(10);
    world.server.edit({ renewTime: microTime(world.clock.now()) });
  }
  assert.ok(world.server.requests - before <= 21, `${world.server.requests - before} in 5 s`);
  await b.stop();
});

Deno.test("dispose leaves a Lease alone that is another's, and gives up after 5 s", async () => {
  const world = setup();
  const net = wire();
  const a = contend(world, "a", net);
  await world.clock.advance(10_000);
  net.cut();
  let stopped = false;
  const stopping = a.stop().then(() => void (stopped = true));
  await world.clock.advance(4_900);
  assert.ok(!stopped);
  await world.clock.advance(100);
  await stopping;
  assert.equal(world.server.lease()?.record.holder, "a");
});

Deno.test("status() tells who leads, since when, and where its pages are", async () => {
  const world = setup();
  const at = world.clock.now();
  const a = contend(world, "a", { address: "10.0.0.1:8080" });
  await world.clock.advance(0);
  const b = contend(world, "b", { address: "10.0.0.2:8080" });
  await world.clock.advance(10_250);
  const { renewedAt, ...told } = b.elector.status();
  assert.deepEqual(told, {
    holder: "a",
    leading: false,
    acquiredAt: at,
    leaseSeconds: 15,
    transitions: 0,
    address: "10.0.0.1:8080",
    lastError: null,
  });
  assert.ok(world.clock.now() - (renewedAt ?? 0) < 2_500);
  assert.equal(a.elector.status().leading, true);
  await a.stop();
  await world.clock.advance(300);
  assert.equal(b.elector.status().address, "10.0.0.2:8080");
  await b.stop();
});

Deno.test("status() tells no address that the holder has not said itself", async () => {
  const world = setup();
  const a = contend(world, "a", { address: "10.0.0.1:8080" });
  await world.clock.advance(0);
  const b = contend(world, "b", { address: "10.0.0.2:8080" });
  const stranger = contend(world, "c", { key: new Secret("x".repeat(32)) });
  await world.clock.advance(5_000);
  assert.equal(b.elector.status().address, "10.0.0.1:8080");
  // Another key than a's believes nothing of it.
  assert.equal(stranger.elector.status().address, null);
  world.server.edit({}, { "ci.ddupan.top/admin-advertise": "192.0.2.1:80" });
  await world.clock.advance(300);
  assert.equal(b.elector.status().holder, "a");
  assert.equal(b.elector.status().address, null);
  // The leader's next renewal puts it right.
  await world.clock.advance(5_000);
  assert.equal(b.elector.status().address, "10.0.0.1:8080");
  // Under another holder the same words prove nothing: client-go's contender leaves them there.
  world.server.edit({ holder: "client-go" });
  await world.clock.advance(300);
  assert.equal(b.elector.status().holder, "client-go");
  assert.equal(b.elector.status().address, null);
  for (const one of [a, b, stranger]) await one.stop();
});
