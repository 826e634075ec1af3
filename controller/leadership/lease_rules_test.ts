import assert from "node:assert/strict";
import { type LeaseRecord, microTime, msOfMicroTime } from "./lease.ts";
import {
  checkLeaseTimes,
  DEFAULT_LEASE_TIMES,
  durationOf,
  released,
  renewed,
  takenOver,
} from "./lease_rules.ts";

const NOW = Date.parse("2026-11-30T01:02:03.004Z");
const WRITER = { self: "me", times: DEFAULT_LEASE_TIMES, now: NOW };
const LAST: LeaseRecord = {
  holder: "other",
  durationSeconds: 40,
  acquireTime: "2026-11-30T00:00:00.123456Z",
  renewTime: "2026-11-30T01:00:00.654321Z",
  transitions: 7,
};

Deno.test("checkLeaseTimes() takes only times with which no two can lead", () => {
  checkLeaseTimes(DEFAULT_LEASE_TIMES);
  checkLeaseTimes({ leaseMs: 4_000, renewDeadlineMs: 3_000, retryMs: 1_000 });
  for (
    const change of [
      { leaseMs: 10_000 },
      { leaseMs: 15_500 },
      { renewDeadlineMs: 2_400 },
      { renewDeadlineMs: 15_000 },
      { retryMs: 0 },
      { retryMs: 9_000 },
    ]
  ) {
    assert.throws(() => checkLeaseTimes({ ...DEFAULT_LEASE_TIMES, ...change }), RangeError);
  }
});

Deno.test("takenOver() raises the transitions, and begins with 0", () => {
  const text = "2026-11-30T01:02:03.004000Z";
  const made = { holder: "me", durationSeconds: 15, acquireTime: text, renewTime: text };
  assert.deepEqual(takenOver(null, WRITER), { ...made, transitions: 0 });
  assert.deepEqual(takenOver(LAST, WRITER), { ...made, transitions: 8 });
  assert.deepEqual(takenOver(released(LAST, NOW), WRITER), { ...made, transitions: 8 });
});

Deno.test("renewed() keeps every digit of acquireTime, and always changes renewTime", () => {
  const first = renewed(LAST, WRITER);
  assert.deepEqual(first, {
    holder: "me",
    durationSeconds: 15,
    acquireTime: LAST.acquireTime,
    renewTime: "2026-11-30T01:02:03.004000Z",
    transitions: 7,
  });
  const second = renewed(first, WRITER);
  assert.equal(second.renewTime, "2026-11-30T01:02:03.004001Z");
  assert.notEqual(renewed(second, WRITER).renewTime, second.renewTime);
  assert.equal(renewed({ ...LAST, acquireTime: null }, WRITER).acquireTime, first.renewTime);
});

Deno.test("durationOf() is what the Lease says, and ours where it says nothing that counts", () => {
  assert.equal(durationOf(LAST, DEFAULT_LEASE_TIMES), 40_000);
  for (const durationSeconds of [null, 0, -1]) {
    assert.equal(durationOf({ ...LAST, durationSeconds }, DEFAULT_LEASE_TIMES), 15_000);
  }
});

Deno.test("microTime() and msOfMicroTime() belong together", () => {
  assert.equal(msOfMicroTime(microTime(NOW)), NOW);
  assert.equal(msOfMicroTime("2026-11-30T01:02:03.004999Z"), NOW);
  assert.equal(msOfMicroTime(null), null);
  assert.equal(msOfMicroTime("soon"), null);
});
