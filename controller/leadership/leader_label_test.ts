import assert from "node:assert/strict";
import { untilAborted } from "../../lib/abortable.ts";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { createLeaderLabel, podOfHolder } from "./leader_label.ts";

const UUID = "0b7c2c5e-1111-4222-8333-0123456789ab";

function setup(predecessor: string | null = null) {
  const clock = createFakeClock();
  const labelled = new Set<string>();
  const pods = new Set(["me", "before", "long-ago"]);
  const world = {
    failing: false,
    hanging: false,
    unlisted: false,
    leads: true,
    calls: 0,
    lists: 0,
    warnings: [] as string[],
  };
  const label = createLeaderLabel({
    pod: "me",
    predecessor: () => predecessor,
    clock,
    random: () => 1,
    logger: {
      ...silentLogger,
      child: () => ({ ...silentLogger, warn: (message) => void world.warnings.push(message) }),
    },
    guard() {
      if (!world.leads) throw new Error("not the leader");
    },
    label: {
      async set(pod, on, { signal }) {
        world.calls++;
        if (world.hanging) await untilAborted(signal);
        if (world.failing) throw new Error("away");
        if (!pods.has(pod)) return false;
        if (on) labelled.add(pod);
        else labelled.delete(pod);
        return true;
      },
      list() {
        world.lists++;
        if (world.failing || world.unlisted) return Promise.reject(new Error("away"));
        return Promise.resolve([...labelled]);
      },
    },
  });
  return { clock, labelled, pods, world, label };
}

Deno.test("keep() moves the label from the dead leader's Pod to ours, and takes it off at the end", async () => {
  const { clock, labelled, label } = setup(`before_${UUID}`);
  labelled.add("before");
  const stop = new AbortController();
  const running = label.keep(stop.signal);
  await clock.advance(0);
  assert.deepEqual([...labelled], ["me"]);
  stop.abort();
  await running;
  assert.deepEqual([...labelled], []);
  assert.equal(clock.pending, 0);
});

Deno.test("keep() puts back a label that a hand has taken off", async () => {
  const { clock, labelled, label } = setup();
  const stop = new AbortController();
  const running = label.keep(stop.signal);
  await clock.advance(0);
  labelled.clear();
  await clock.advance(30_000);
  assert.deepEqual([...labelled], ["me"]);
  stop.abort();
  await running;
});

Deno.test("keep() keeps trying with growing waits while the server is away", async () => {
  const { clock, labelled, world, label } = setup(`before_${UUID}`);
  world.failing = true;
  labelled.add("before");
  const stop = new AbortController();
  const running = label.keep(stop.signal);
  await clock.advance(120_000);
  assert.ok(world.calls > 5 && world.calls < 16, `${world.calls} calls in two minutes`);
  assert.equal(world.warnings.length, 1);
  world.failing = false;
  await clock.advance(15_000);
  assert.deepEqual([...labelled], ["me"]);
  stop.abort();
  await running;
});

Deno.test("keep() labels nothing once it may not act", async () => {
  const { clock, labelled, world, label } = setup(`before_${UUID}`);
  world.leads = false;
  const stop = new AbortController();
  const running = label.keep(stop.signal);
  await clock.advance(5_000);
  assert.equal(world.calls, 0);
  stop.abort();
  await running;
  assert.deepEqual([...labelled], []);
});

Deno.test("keep() only warns when there is no Pod of our name", async () => {
  const { clock, pods, world, label } = setup(`gone_${UUID}`);
  pods.clear();
  const stop = new AbortController();
  const running = label.keep(stop.signal);
  await clock.advance(0);
  assert.equal(world.warnings.length, 1);
  stop.abort();
  await running;
});

Deno.test("keep() gives up taking it off after 2 s", async () => {
  const { clock, world, label } = setup();
  const stop = new AbortController();
  const running = label.keep(stop.signal);
  await clock.advance(0);
  world.hanging = true;
  stop.abort();
  await clock.advance(2_000);
  await running;
});

Deno.test("clear() takes a dead process's label off our Pod, and never rejects", async () => {
  const { labelled, world, label } = setup();
  labelled.add("me");
  await label.clear(new AbortController().signal);
  assert.deepEqual([...labelled], []);
  world.failing = true;
  await label.clear(new AbortController().signal);
  assert.equal(world.warnings.length, 1);
});

Deno.test("clear() tells when it has failed, and clearLater() goes on until it is off", async () => {
  const { clock, labelled, world, label } = setup();
  labelled.add("me");
  world.failing = true;
  const stop = new AbortController();
  assert.equal(await label.clear(stop.signal), false);
  const later = label.clearLater(stop.signal);
  await clock.advance(120_000);
  assert.ok(world.calls > 5 && world.calls < 16, `${world.calls} calls in two minutes`);
  assert.equal(world.warnings.length, 1);
  world.failing = false;
  await clock.advance(15_000);
  await later;
  assert.deepEqual([...labelled], []);
  assert.equal(await label.clear(stop.signal), true);
  assert.equal(clock.pending, 0);
});

Deno.test("clearLater() waits for a slow server, and ends at once when it is not wanted any more", async () => {
  const { clock, world, label } = setup();
  world.hanging = true;
  const stop = new AbortController();
  const later = label.clearLater(stop.signal);
  await clock.advance(60_000);
  assert.equal(world.calls, 1);
  stop.abort();
  await later;
  assert.equal(clock.pending, 0);
  await label.clearLater(stop.signal);
});

Deno.test("keep() looks again soon when a request to take it off may still arrive", async () => {
  const { clock, labelled, world, label } = setup();
  world.hanging = true;
  const clearing = label.clear(new AbortController().signal);
  await clock.advance(2_000);
  await clearing;
  world.hanging = false;
  const stop = new AbortController();
  const running = label.keep(stop.signal);
  await clock.advance(0);
  labelled.delete("me"); // The late request.
  await clock.advance(5_000);
  assert.deepEqual([...labelled], ["me"]);
  world.calls = 0;
  await clock.advance(29_000);
  assert.equal(world.calls, 0);
  stop.abort();
  await running;
});

Deno.test("keep() takes off what a former leader's request puts on another Pod, as often as it comes", async () => {
  const { clock, labelled, label } = setup(`before_${UUID}`);
  const stop = new AbortController();
  const running = label.keep(stop.signal);
  await clock.advance(0);
  for (const late of ["before", "long-ago", "before"]) {
    labelled.add(late);
    await clock.advance(5_000);
    assert.deepEqual([...labelled], ["me"]);
  }
  // The minute begins anew with each.
  await clock.advance(50_000);
  labelled.add("long-ago");
  await clock.advance(5_000);
  assert.deepEqual([...labelled], ["me"]);
  await clock.advance(120_000);
  labelled.add("long-ago");
  await clock.advance(30_000);
  assert.deepEqual([...labelled], ["me"]);
  stop.abort();
  await running;
  assert.equal(clock.pending, 0);
});

Deno.test("keep() puts back soon what a former leader's request takes off our Pod", async () => {
  const { clock, labelled, label } = setup();
  const stop = new AbortController();
  const running = label.keep(stop.signal);
  await clock.advance(1_000);
  labelled.delete("me");
  await clock.advance(5_000);
  assert.deepEqual([...labelled], ["me"]);
  stop.abort();
  await running;
});

Deno.test("keep() looks for other Pods each 5 s for a minute, each 30 s later, and never without the lead", async () => {
  const { clock, labelled, world, label } = setup();
  const stop = new AbortController();
  const running = label.keep(stop.signal);
  await clock.advance(60_000);
  assert.equal(world.lists, 12);
  await clock.advance(300_000);
  assert.equal(world.lists, 22);
  world.leads = false;
  world.calls = 0;
  labelled.add("before");
  await clock.advance(60_000);
  assert.deepEqual([world.lists, world.calls], [22, 0]);
  stop.abort();
  await running;
});

Deno.test("keep() keeps the label on our Pod, and warns once, where Pods cannot be listed", async () => {
  const { clock, labelled, world, label } = setup();
  world.unlisted = true;
  const stop = new AbortController();
  const running = label.keep(stop.signal);
  await clock.advance(120_000);
  assert.deepEqual([...labelled], ["me"]);
  assert.equal(world.warnings.length, 1);
  stop.abort();
  await running;
});

Deno.test("podOfHolder() reads HOSTNAME_<uuid>, and nothing else", () => {
  assert.equal(podOfHolder(`controller-6d4f_x-9_${UUID}`), "controller-6d4f_x-9");
  for (const holder of [null, "", "host", `_${UUID}`, "host_go_150405.000", `${UUID}`]) {
    assert.equal(podOfHolder(holder), null);
  }
});
