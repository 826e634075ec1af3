import assert from "node:assert/strict";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { executorOf } from "../../tests/support/executor_of.ts";
import { createBell, pollChanges } from "./watch.ts";

Deno.test("pollChanges() looks again at once after a ring while it looked", async () => {
  const clock = createFakeClock();
  const bell = createBell();
  const stop = new AbortController();
  let phase = "running";
  const look = () => {
    const seen = [executorOf({ name: "ci-1", phase })];
    // Right after it was seen.
    if (phase === "running") bell.ring();
    phase = "ended";
    return Promise.resolve(seen);
  };
  const changes = pollChanges(look, {
    bell,
    pollMs: 250,
    clock,
    logger: silentLogger,
    signal: stop.signal,
  });
  const seen: (string | undefined)[] = [];
  const watching = (async () => {
    for await (const change of changes) seen.push(change.executor?.phase);
  })();
  await clock.advance(0);
  assert.deepEqual(seen, ["running", "ended"]);
  assert.equal(clock.pending, 1);
  stop.abort();
  await watching;
});
