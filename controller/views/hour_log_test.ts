import assert from "node:assert/strict";
import { createLedgerWorld, infoOf } from "../../tests/support/ledger_world.ts";
import { events } from "../../tests/support/state_events.ts";
import { createHourLog } from "./hour_log.ts";

const MINUTE_MS = 60_000;

function setup() {
  const world = createLedgerWorld({ capacity: 2 });
  const stop = new AbortController();
  const log = createHourLog(world, stop.signal);
  const put = (task: number) =>
    world.ledger.add(infoOf(task), { kind: "stored" }, world.clock.now());
  const dispatch = (task: number, ...names: readonly string[]) => {
    for (const name of names) {
      const event = events[name];
      assert.ok(event !== undefined, name);
      world.ledger.dispatch(infoOf(task).id, event);
    }
  };
  const last = (minutes: number) => log.of("pod").minutes.slice(-minutes);
  return { ...world, log, put, dispatch, last };
}

Deno.test("createHourLog() has 60 minutes, those before the start unknown, not 0", async () => {
  const { log, clock } = setup();
  await clock.advance(2 * MINUTE_MS);
  const { minutes } = log.of("pod");
  assert.equal(minutes.length, 60);
  assert.equal(minutes[0]?.waiting, null);
  assert.equal(minutes[0]?.started, null);
  assert.deepEqual(minutes.slice(-3).map(({ waiting, started }) => [waiting, started]), [
    [0, 0],
    [0, 0],
    [0, 0],
  ]);
});

Deno.test("createHourLog() carries the waiting ones into minutes without an event", async () => {
  const { put, dispatch, last, clock } = setup();
  for (let task = 1; task <= 3; task++) put(task);
  await clock.advance(2 * MINUTE_MS);
  assert.deepEqual(last(3).map(({ waiting }) => waiting), [3, 3, 3]);
  dispatch(1, "delivered");
  assert.deepEqual(last(3).map(({ waiting }) => waiting), [3, 3, 3], "most of the minute");
  await clock.advance(MINUTE_MS);
  assert.deepEqual(last(2).map(({ waiting }) => waiting), [3, 2]);
});

Deno.test("createHourLog() counts starts with their median, and ends with their failures", async () => {
  const { put, dispatch, last, clock } = setup();
  put(1);
  await clock.advance(4_000);
  dispatch(1, "delivered", "seen", "ready", "claim");
  assert.deepEqual(last(1).map(({ started, startMs }) => [started, startMs]), [[1, 4_000]]);
  dispatch(1, "held", "messageGone", "final", "marked", "leaving", "gone", "deleted");
  const [now] = last(1);
  assert.equal(now?.ended, 1);
  await clock.advance(61 * MINUTE_MS);
  assert.equal(last(60).every(({ started }) => started === 0), true, "an hour later it is gone");
});
