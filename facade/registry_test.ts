import assert from "node:assert/strict";
import { createFakeClock } from "../lib/fake_clock.ts";
import { silentLogger } from "../lib/logger.ts";
import { createFakeGitea } from "../tests/fakes/gitea_port.ts";
import { createRecordedEvents, GATE, JOB_ID, sampleInfo } from "../tests/support/facade_setup.ts";
import { sampleTask } from "../tests/support/tasks.ts";
import { createRegistry, LATE_ROWS_MS } from "./registry.ts";
import { createRelay } from "./relay.ts";

function setup() {
  const clock = createFakeClock();
  const ended: string[] = [];
  const deps = {
    gitea: createFakeGitea(),
    events: createRecordedEvents(),
    clock,
    logger: silentLogger,
  };
  const registry = createRegistry({
    clock,
    relayFor: (info, offset) => createRelay(deps, info, offset),
    ended: (info) => ended.push(info.id),
  });
  return { clock, registry, ended, info: sampleInfo(11n), task: sampleTask({ id: 11n }) };
}

Deno.test("offer() is idempotent for the same task and a conflict for another task or identity", () => {
  const { registry, info, task } = setup();
  assert.equal(registry.offer(info, task), "offered");
  assert.equal(registry.offer(info, sampleTask({ id: 11n })), "offered");
  assert.equal(registry.offer(info, sampleTask({ id: 11n, workflow: "name: other" })), "conflict");
  assert.equal(registry.offer(info, sampleTask({ id: 12n })), "conflict");
  assert.equal(registry.offer(sampleInfo(11n, `${JOB_ID}2`), task), "conflict");
  assert.deepEqual(registry.count(), { offered: 1, claimed: 0 });
});

Deno.test("resolve() finds an assignment for its own SPIFFE ID only", () => {
  const { registry, info, task } = setup();
  assert.equal(registry.resolve(info.id, JOB_ID).kind, "unknown");
  registry.offer(info, task);
  assert.equal(registry.resolve(info.id, JOB_ID).kind, "found");
  assert.equal(registry.resolve(info.id, `${JOB_ID}2`).kind, "foreign");
});

Deno.test("expectProof() is for its own SPIFFE ID, until the assignment is offered or taken back", async () => {
  const { registry, info, task } = setup();
  const { signal } = new AbortController();
  registry.expectProof(info);
  assert.equal(registry.resolve(info.id, JOB_ID).kind, "unproven");
  assert.equal(registry.resolve(info.id, `${JOB_ID}2`).kind, "foreign");
  const offered = registry.waitOffer(info.id, JOB_ID, signal);
  registry.offer(info, task);
  assert.equal((await offered).kind, "found");
  registry.expectProof(info);
  assert.equal(registry.resolve(info.id, JOB_ID).kind, "found", "what is known is not doubted");

  const other = sampleInfo(12n);
  registry.expectProof(other);
  registry.remove(other.id);
  assert.equal(registry.resolve(other.id, JOB_ID).kind, "unknown");
});

Deno.test("claimed() wakes waitClaimed(), keeps the first gate, and delivered() drops the payload", async () => {
  const { registry, info, task } = setup();
  registry.offer(info, task);
  const waiting = registry.waitClaimed(info.id, new AbortController().signal);
  registry.claimed(info.id, GATE, 0);
  assert.equal(await waiting, GATE);
  registry.claimed(info.id, "other", 0);
  registry.delivered(info.id);
  const found = registry.resolve(info.id, JOB_ID);
  assert(found.kind === "found" && found.offer.state.kind === "claimed");
  assert.equal(found.offer.state.gate, GATE);
  assert.equal(found.offer.state.task, null);
  assert.equal(registry.offer(info, task), "offered", "a redelivered message is no conflict");
});

Deno.test("waitOffer() ends with the offer or the signal; waitClaimed() rejects with its reason", async () => {
  const { registry, info, task } = setup();
  const stop = new AbortController();
  const offered = registry.waitOffer(info.id, JOB_ID, stop.signal);
  const other = registry.waitOffer(sampleInfo(12n).id, JOB_ID, stop.signal);
  const claimed = registry.waitClaimed(info.id, stop.signal);
  registry.offer(info, task);
  assert.equal((await offered).kind, "found");
  stop.abort(new Error("enough"));
  assert.equal((await other).kind, "unknown");
  await assert.rejects(claimed, /enough/);
});

Deno.test("sweep() forgets what was taken back after the time for late rows", async () => {
  const { registry, clock, ended, info, task } = setup();
  registry.offer(info, task);
  registry.claimed(info.id, GATE, 0);
  registry.remove(info.id);
  await clock.advance(LATE_ROWS_MS - 1);
  registry.sweep();
  const found = registry.resolve(info.id, JOB_ID);
  assert(found.kind === "found" && found.offer.state.kind === "removed");
  assert.ok(found.offer.state.relay !== null);
  await clock.advance(1);
  registry.sweep();
  assert.equal(registry.resolve(info.id, JOB_ID).kind, "unknown");
  assert.deepEqual(ended, [info.id]);
});

Deno.test("offer() after remove() starts anew", () => {
  const { registry, info, task } = setup();
  registry.offer(info, task);
  registry.remove(info.id);
  assert.equal(registry.offer(info, task), "offered");
  assert.deepEqual(registry.count(), { offered: 1, claimed: 0 });
});
