import assert from "node:assert/strict";
import type { Svid } from "../clients/spiffe/workload_api.ts";
import { createFakeClock } from "../lib/fake_clock.ts";
import { silentLogger } from "../lib/logger.ts";
import { createOwnIdentity } from "./own_identity.ts";

Deno.test("createOwnIdentity() tells of the moment in which the SVID is over, and of a new one", async () => {
  const clock = createFakeClock();
  let svid = { expiresAt: clock.now() + 10_000 } as Svid;
  const svids = {
    current: () => svid,
    status: () => ({ state: "stale", since: 0, lastError: "UNAVAILABLE: gone" } as const),
  };
  const own = createOwnIdentity(svids, { clock, logger: silentLogger });
  const told: (string | undefined)[] = [];
  const stop = new AbortController();
  const watching = own.watch(() => told.push(own.cutOff()?.code), stop.signal);
  await clock.advance(9_000);
  assert.equal(own.cutOff(), null);
  assert.deepEqual(told, []);
  await clock.advance(2_000);
  assert.deepEqual(told, ["identity_pending"]);
  assert.match(own.cutOff()?.detail ?? "", /no valid SVID.*: UNAVAILABLE: gone$/);
  await clock.advance(5_000);
  svid = { expiresAt: clock.now() + 10_000 } as Svid;
  await clock.advance(1_000);
  assert.deepEqual(told, ["identity_pending", undefined]);
  stop.abort();
  await watching;
});

Deno.test("createOwnIdentity() tells who was told it is over between two looks that it no longer is", async () => {
  const clock = createFakeClock();
  let svid = { expiresAt: clock.now() + 10_500 } as Svid;
  const svids = {
    current: () => svid,
    status: () => ({ state: "stale", since: 0, lastError: null } as const),
  };
  const own = createOwnIdentity(svids, { clock, logger: silentLogger });
  let told = 0;
  const stop = new AbortController();
  const watching = own.watch(() => told += 1, stop.signal);
  await clock.advance(10_700);
  assert.equal(own.cutOff()?.code, "identity_pending");
  svid = { expiresAt: clock.now() + 60_000 } as Svid;
  await clock.advance(1_000);
  assert.equal(told, 1);
  await clock.advance(5_000);
  assert.equal(told, 1);
  stop.abort();
  await watching;
});
