import assert from "node:assert/strict";
import { createFakeClock } from "../lib/fake_clock.ts";
import { createRecordedLogger } from "../tests/support/facade_setup.ts";
import { createQuietLogger } from "./quiet_logger.ts";

Deno.test("warn() writes the same once in 10 s, and then how often it was not written", async () => {
  const clock = createFakeClock();
  const recorded = createRecordedLogger();
  const logger = createQuietLogger(recorded, clock);
  for (let i = 0; i < 50; i++) {
    logger.warn("call failed", { method: "UpdateLog", error: new Error(`${i}`) });
  }
  logger.warn("call failed", { method: "UpdateTask" });
  logger.error("fault");
  logger.error("fault");
  assert.equal(recorded.records.length, 4);
  await clock.advance(10_000);
  logger.warn("call failed", { method: "UpdateLog" });
  assert.match(recorded.records.at(-1) ?? "", /"method":"UpdateLog","repeated":49/);
});

Deno.test("warn() is bounded whatever the texts are, and hears of new ones again later", async () => {
  const clock = createFakeClock();
  const recorded = createRecordedLogger();
  const logger = createQuietLogger(recorded, clock);
  for (let i = 0; i < 10_000; i++) logger.warn("refused", { detail: `${i}` });
  assert.equal(recorded.records.length, 257);
  await clock.advance(10_000);
  logger.warn("refused", { detail: "new" });
  assert.match(recorded.records.at(-1) ?? "", /"detail":"new"/);
});
