import assert from "node:assert/strict";
import { createFakeClock } from "./fake_clock.ts";
import { createHealthKeeper } from "./source_health.ts";

Deno.test("createHealthKeeper() knows nothing before the first answer", () => {
  const keeper = createHealthKeeper(createFakeClock(1_000));
  assert.deepEqual(keeper.status(), {
    state: "unknown",
    since: 1_000,
    lastError: null,
    lastOkAt: null,
  });
});

Deno.test("createHealthKeeper() is degraded for ten seconds after the last answer, then down", async () => {
  const clock = createFakeClock(0);
  const keeper = createHealthKeeper(clock);
  keeper.ok();
  await clock.advance(2_000);
  keeper.failed(new Error("connection refused"));
  assert.equal(keeper.status().state, "degraded");
  assert.equal(keeper.status().since, 2_000);
  await clock.advance(8_000);
  assert.deepEqual(keeper.status(), {
    state: "down",
    since: 10_000,
    lastError: "connection refused",
    lastOkAt: 0,
  });
  keeper.ok();
  assert.deepEqual(keeper.status(), {
    state: "up",
    since: 10_000,
    lastError: "connection refused",
    lastOkAt: 10_000,
  });
  await clock.advance(60_000);
  assert.equal(keeper.status().lastError, null);
});

Deno.test("createHealthKeeper() is down at once when there never was an answer", async () => {
  const clock = createFakeClock(0);
  const keeper = createHealthKeeper(clock);
  await clock.advance(500);
  keeper.failed(new Error("refused"));
  assert.deepEqual(keeper.status(), {
    state: "down",
    since: 500,
    lastError: "refused",
    lastOkAt: null,
  });
});

Deno.test("createHealthKeeper() is degraded while a watch is interrupted though calls succeed", async () => {
  const clock = createFakeClock(0);
  const keeper = createHealthKeeper(clock);
  keeper.ok();
  await clock.advance(1_000);
  keeper.interrupted("pods", new Error("forbidden"));
  await clock.advance(1_000);
  keeper.interrupted("pods", new Error("still forbidden"));
  keeper.interrupted("entries", new Error("forbidden"));
  keeper.ok();
  assert.deepEqual(keeper.status(), {
    state: "degraded",
    since: 1_000,
    lastError: "still forbidden",
    lastOkAt: 2_000,
  });
  keeper.interrupted("pods", null);
  assert.equal(keeper.status().state, "degraded");
  keeper.interrupted("entries", null);
  assert.equal(keeper.status().state, "up");
  assert.equal(keeper.status().since, 2_000);
});
