import assert from "node:assert/strict";
import { createFakeClock } from "../lib/fake_clock.ts";
import { createSources, RECORDS_LOST } from "./sources.ts";

Deno.test("all() shows lost records as an alarm, until NATS itself has worse to tell", () => {
  const clock = createFakeClock();
  const sources = createSources(clock, { self: "me", mode: "none" });
  let status = {
    kind: "connected" as "connected" | "disconnected",
    since: 0,
    detail: null,
    server: null,
  };
  sources.nats = () => status;
  assert.equal(sources.all().nats.state, "up");
  sources.recordsLostAt = clock.now();
  const { state, lastError } = sources.all().nats;
  assert.equal(state, "degraded");
  assert.ok(lastError?.startsWith(RECORDS_LOST));
  assert.ok(lastError?.includes(new Date(clock.now()).toISOString()));
  status = { ...status, kind: "disconnected" };
  assert.equal(sources.all().nats.state, "down");
});
