import assert from "node:assert/strict";
import { createControlStore } from "../../clients/nats/control_store.ts";
import { createEventLog } from "../../clients/nats/event_log.ts";
import { guardConnection } from "../../clients/nats/guarded_connection.ts";
import { QueueError } from "../../controller/queue.ts";
import { systemClock } from "../../lib/clock.ts";
import { DEPS, openNatsWorld } from "../support/nats_world.ts";

Deno.test("guardConnection() holds what is sent while the guard is unsure, and refuses it when it is sure", async () => {
  await using world = await openNatsWorld();
  const state: { refusal: Error | null } = { refusal: null };
  const asked = Promise.withResolvers<void>();
  const guarded = guardConnection(world.connection, () => {
    if (state.refusal === null) return;
    asked.resolve();
    throw state.refusal;
  });
  const control = createControlStore(guarded, { clock: systemClock });
  const plain = createControlStore(world.connection, { clock: systemClock });
  const call = { signal: AbortSignal.timeout(10_000) };
  assert.equal(await control.takeOver(call), 1);

  state.refusal = new QueueError("unavailable", "Send: it is not sure who leads");
  const waiting = control.takeOver(call);
  await asked.promise;
  assert.equal(await plain.epoch(call), 1);
  state.refusal = null;
  assert.equal(await waiting, 2);

  state.refusal = new Error("another leads");
  await assert.rejects(control.takeOver(call), /another leads/);
  guarded.wire.publish("ci.events.pod.gitea-task-1", new TextEncoder().encode("{}"));
  await using log = createEventLog(world.connection, DEPS);
  assert.deepEqual(await log.read({ limit: 5 }, call), []);
  assert.equal(await plain.epoch(call), 2);
});
