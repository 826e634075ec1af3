import assert from "node:assert/strict";
import { silentLogger } from "../../lib/logger.ts";
import { createTaskGroup } from "../../lib/task_group.ts";
import { createLedgerWorld, infoOf } from "../../tests/support/ledger_world.ts";
import { journalOf } from "../../tests/support/journal.ts";
import { eventually } from "../../tests/support/eventually.ts";
import { events } from "../../tests/support/state_events.ts";
import type { ExecutorName } from "../model/ids.ts";
import type { Span } from "./span.ts";
import { createTraces } from "./traces.ts";

/** Traces that follow a ledger, and what they have sent. */
function setup(history: Parameters<typeof createTraces>[0]["history"] = () => Promise.resolve([])) {
  const world = createLedgerWorld();
  const sent: Span[] = [];
  const tasks = createTaskGroup(silentLogger);
  const traces = createTraces({
    registration: "uuid-1",
    sink: { record: (span) => void sent.push(span) },
    clock: world.clock,
    logger: silentLogger,
    tasks,
    history,
  });
  traces.follow(world.ledger);
  return { ...world, traces, sent, tasks };
}

/** Through its whole life, from the hand-out on. */
const LIFE = [
  ...["delivered", "seen", "ready", "claim", "held", "messageGone", "final", "marked"],
  ...["ended", "gone", "deleted"],
];

Deno.test("fetched() forgets tasks that were never stored, not those that come after them", () => {
  const { traces, ledger, sent } = setup();
  for (let task = 1; task <= 1_500; task++) traces.fetched(infoOf(task).id);
  const { info } = ledger.add(infoOf(1_500), { kind: "stored" }, 10);
  for (const name of LIFE) {
    const event = events[name];
    assert.ok(event !== undefined, name);
    ledger.dispatch(info.id, event);
  }
  assert.ok(sent.some(({ name }) => name === "store"), String(sent.map(({ name }) => name)));
});

Deno.test("send() takes no row that an earlier process did not see for the job's first", async () => {
  const whole = journalOf(["received", "capacity_acquired", "executor_created", "identity_bound"])
    .concat(journalOf(["runner_claimed", "running", "terminal", "cleaned"], 2_000));
  const { ledger, sent, tasks } = setup(() => Promise.resolve(whole));
  for (const restored of [true, false]) {
    const entry = ledger.add(infoOf(7), {
      kind: "running",
      executor: "e" as ExecutorName,
      presence: "alive",
    }, 10);
    entry.restored = restored;
    entry.moments.set("first_row", 2_015);
    if (!restored) entry.journal.push(...whole);
    for (const name of ["final", "marked", "ended", "gone", "deleted"]) {
      const event = events[name];
      assert.ok(event !== undefined, name);
      ledger.dispatch(infoOf(7).id, event);
    }
    await eventually(() => sent.some(({ name }) => name === "run"), { what: "the trace" });
    assert.equal(sent.some(({ name }) => name === "first_row"), !restored);
    sent.length = 0;
  }
  await tasks[Symbol.asyncDispose]();
});
