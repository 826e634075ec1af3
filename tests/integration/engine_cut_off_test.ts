import assert from "node:assert/strict";
import { createWorld } from "../support/engine_world.ts";

Deno.test("engine makes no executor while none could reach the facade, says why, and goes on", async () => {
  await using world = await createWorld();
  const { engine } = await world.start();
  world.cutOff = { code: "identity_pending", detail: "no valid SVID" };
  engine.reachChanged();
  await world.submit(1);
  await world.clock.advance(10_000);
  const entry = engine.ledger.get(world.id(1));
  assert.deepEqual([entry?.reason?.code, entry?.reason?.detail], [
    "identity_pending",
    "no valid SVID",
  ]);
  assert.equal(world.pod.executors.size, 0);
  world.cutOff = null;
  engine.reachChanged();
  assert.equal(entry?.reason?.code, "awaiting_slot");
  await world.cleaned(1);
  world.assertClean();
});

Deno.test("engine lets a job that runs end while the facade's identity is over for a time", async () => {
  await using world = await createWorld();
  const { engine } = await world.start();
  await world.submit(1);
  await world.until("the run", () => world.events(1).includes("running"));
  world.cutOff = { code: "identity_pending", detail: "no valid SVID" };
  engine.reachChanged();
  await world.cleaned(1);
  assert.equal(engine.pools.pod.free(), 0);
  world.cutOff = null;
  engine.reachChanged();
  assert.equal(engine.pools.pod.free(), 4);
});
