import assert from "node:assert/strict";
import { createLedgerWorld, infoOf } from "../../tests/support/ledger_world.ts";
import { events } from "../../tests/support/state_events.ts";
import { createLabelLog } from "./canary.ts";

function setup() {
  const world = createLedgerWorld({ capacity: 9 });
  const log = createLabelLog(world, new AbortController().signal);
  const put = (task: number, label?: "vm" | "vm-dev") =>
    world.ledger.add(
      infoOf(task, { backend: "vm", ...(label === undefined ? {} : { label }) }),
      { kind: "stored" },
      world.clock.now(),
    );
  const dispatch = (task: number, ...names: readonly string[]) => {
    for (const name of names) {
      const event = events[name];
      assert.ok(event !== undefined, name);
      world.ledger.dispatch(infoOf(task).id, event);
    }
  };
  return { ...world, log, put, dispatch };
}

const WAY = ["delivered", "seen", "ready", "claim"] as const;
const END = ["held", "messageGone", "final", "marked", "leaving", "gone", "deleted"] as const;

Deno.test("createLabelLog() keeps the figures of both labels apart", async () => {
  const { log, put, dispatch, clock } = setup();
  put(1, "vm-dev");
  put(2, "vm");
  put(3, "vm");
  await clock.advance(2_000);
  dispatch(1, ...WAY, ...END);
  await clock.advance(3_000);
  dispatch(2, ...WAY);
  const [production, canary] = [log.of("vm"), log.of("vm-dev")];
  assert.deepEqual([canary.ended, canary.success, canary.startMs.p50], [1, 1, 2_000]);
  assert.deepEqual([production.ended, production.running, production.waiting], [0, 1, 1]);
  assert.equal(production.startMs.p50, 5_000);
});

Deno.test("createLabelLog() lists the last failures, newest first, with their reason", () => {
  const { log, put, dispatch } = setup();
  for (let task = 1; task <= 7; task++) {
    put(task, "vm-dev");
    dispatch(task, ...WAY, "held", "messageGone", "lost", "settled", "marked", "gone", "deleted");
  }
  const { failure, lastFailures } = log.of("vm-dev");
  assert.equal(failure, 7);
  assert.deepEqual(lastFailures.map(({ id }) => id), [7, 6, 5, 4, 3].map((n) => infoOf(n).id));
  assert.equal(lastFailures[0]?.code, "executor_failed");
});

Deno.test("createLabelLog() says how many have no label, and leaves pod out", () => {
  const { log, put, dispatch, ledger, clock } = setup();
  put(1);
  dispatch(1, ...WAY, ...END);
  ledger.add(infoOf(2), { kind: "stored" }, clock.now());
  dispatch(2, ...WAY, ...END);
  assert.equal(log.unlabelled(), 1);
  assert.equal(log.of("vm").ended + log.of("vm-dev").ended, 0);
});
