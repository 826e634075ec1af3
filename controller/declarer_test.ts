import assert from "node:assert/strict";
import { createFakeClock } from "../lib/fake_clock.ts";
import { silentLogger } from "../lib/logger.ts";
import { createDeclarer } from "./declarer.ts";
import { createGiteaWatch } from "./gitea_status.ts";

Deno.test("declared() knows since when each label stands, whatever else is declared meanwhile", async () => {
  const clock = createFakeClock();
  const { signal } = new AbortController();
  let labels: readonly string[] = ["pod", "vm-dev"];
  const declarer = createDeclarer({
    gitea: { declare: () => Promise.resolve({ serverCapabilities: null }) },
    watch: createGiteaWatch(clock, silentLogger),
    logger: silentLogger,
    clock,
    random: () => 0,
    labels: () => labels,
    labelsChanged: () => new Promise(() => {}),
    onGiven() {},
    onServerCapabilities() {},
    version: "0.1.0",
    capabilities: [],
    errorBackoffMs: 1_000,
  });
  assert.equal(declarer.declared(), null);
  const first = clock.now();
  await declarer.declare(signal);
  await clock.advance(5_000);
  labels = ["vm-dev"];
  await declarer.declare(signal);
  assert.deepEqual([...declarer.declared()?.labelSince ?? []], [["vm-dev", first]]);
  await clock.advance(5_000);
  labels = ["pod", "vm"];
  await declarer.declare(signal);
  const now = clock.now();
  assert.deepEqual([...declarer.declared()?.labelSince ?? []], [["pod", now], ["vm", now]]);
  assert.equal(declarer.declared()?.since, now);
});
