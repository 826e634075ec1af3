import assert from "node:assert/strict";
import { executorOf } from "../tests/support/executor_of.ts";
import { fc } from "../tests/support/property.ts";
import { createLedgerWorld, infoOf } from "../tests/support/ledger_world.ts";
import { events } from "../tests/support/state_events.ts";
import type { Entry } from "./entry.ts";
import { BACKENDS } from "./model/ids.ts";
import { holdsSlot, type State } from "./model/state.ts";
import type { StoredMessage } from "./queue.ts";

const KINDS = [
  "stored",
  "parked",
  "admitted",
  "starting",
  "ready",
  "claimed",
  "running",
  "settling",
  "terminal",
  "cleaned",
] as const satisfies readonly State["kind"][];

const LIFE = ["delivered", "seen", "ready", "claim", "held", "messageGone", "final", "marked"];
const END = ["ended", "gone", "deleted"];

type World = ReturnType<typeof createLedgerWorld>;

function dispatch(world: World, task: number, names: readonly string[]): Entry {
  const { id } = infoOf(task);
  for (const name of names) {
    const event = events[name];
    assert.ok(event !== undefined, name);
    world.ledger.dispatch(id, event);
  }
  const entry = world.ledger.get(id);
  assert.ok(entry !== undefined);
  return entry;
}

Deno.test("inState() and the pools agree with the entries, whatever happens", () => {
  const names = fc.constantFrom(...Object.keys(events));
  const steps = fc.array(fc.tuple(fc.integer({ min: 1, max: 6 }), names), { maxLength: 80 });
  fc.assert(fc.property(steps, (all) => {
    const world = createLedgerWorld({ keepEnded: 2 });
    const { ledger, pools } = world;
    for (const [task, name] of all) {
      const info = infoOf(task, { backend: task % 2 === 0 ? "pod" : "vm" });
      if (ledger.get(info.id) === undefined) ledger.add(info, { kind: "stored" }, 0);
      dispatch(world, task, [name]);
      const entries = [...ledger.entries()];
      for (const backend of BACKENDS) {
        const mine = entries.filter((entry) => entry.info.backend === backend);
        for (const kind of KINDS) {
          const expected = new Set(mine.filter((entry) => entry.state.kind === kind));
          assert.deepEqual(ledger.inState(backend, kind), expected);
        }
        const holders = mine.filter((entry) => holdsSlot(entry.state)).map((entry) =>
          entry.info.id
        );
        assert.deepEqual(new Set(pools[backend].holders()), new Set(holders));
      }
    }
  }));
});

Deno.test("dispatch() keeps the last ended ones only, and what pages show of them", () => {
  const world = createLedgerWorld({ keepEnded: 3 });
  for (let task = 1; task <= 10; task++) {
    const entry = world.ledger.add(infoOf(task), { kind: "stored" }, 0);
    entry.message = messageOf(entry);
    entry.executor = executorOf({
      metadata: { labels: { a: "x".repeat(1_000) }, annotations: {} },
      node: "n1",
    });
    dispatch(world, task, [...LIFE, ...END]);
  }
  const kept = [...world.ledger.entries()];
  assert.deepEqual(kept.map((entry) => entry.info.id), [8, 9, 10].map((task) => infoOf(task).id));
  for (const { message, executor, journal } of kept) {
    assert.equal(message, null);
    assert.deepEqual([executor?.name, executor?.metadata.labels], ["ci-00-1", {}]);
    assert.equal(journal.at(-1)?.event, "cleaned");
  }
});

Deno.test("dispatch() keeps every live one, however many have ended", () => {
  const world = createLedgerWorld({ keepEnded: 1 });
  world.ledger.add(infoOf(1), { kind: "stored" }, 0);
  for (let task = 2; task <= 6; task++) {
    world.ledger.add(infoOf(task), { kind: "stored" }, 0);
    dispatch(world, task, [...LIFE, ...END]);
  }
  assert.deepEqual([...world.ledger.entries()].map((e) => e.info.id), [infoOf(1).id, infoOf(6).id]);
});

Deno.test("dispatch() keeps the reason of a failed one to the end, and drops it at the claim", () => {
  const world = createLedgerWorld();
  world.ledger.add(infoOf(1), { kind: "stored" }, 0);
  assert.equal(dispatch(world, 1, ["delivered", "ready", "claim"]).reason, null);
  const lost = dispatch(world, 1, ["lost", "settled", "messageGone", "gone", "deleted"]);
  assert.equal(lost.state.kind, "cleaned");
  assert.equal(lost.reason?.code, "executor_failed");
});

Deno.test("dispatch() remembers since when a reason holds while it stays the same", async () => {
  const world = createLedgerWorld();
  world.ledger.add(infoOf(1), { kind: "stored" }, 0);
  const entry = dispatch(world, 1, ["delivered", "seen", "notReady"]);
  const since = entry.reason?.since;
  await world.clock.advance(5_000);
  dispatch(world, 1, ["notReady"]);
  assert.equal(entry.reason?.since, since);
  dispatch(world, 1, ["backendDoubt"]);
  assert.equal(entry.reason?.since, world.clock.now());
});

Deno.test("dispatch() goes on telling why there was no executor while that is tried again", async () => {
  const world = createLedgerWorld();
  const { id } = world.ledger.add(infoOf(1), { kind: "stored" }, 0).info;
  const reason = () => world.ledger.get(id)?.reason;
  dispatch(world, 1, ["delivered"]);
  assert.equal(reason()?.code, "executor_starting");
  for (const code of ["backend_unavailable", "quota"] as const) {
    const why = { code, detail: "no answer" };
    world.ledger.dispatch(id, { kind: "backend_failed", ...why, executor: "none" });
    const since = world.clock.now();
    await world.clock.advance(15_000);
    assert.equal(dispatch(world, 1, ["delivered"]).state.kind, "admitted");
    assert.deepEqual(reason(), { ...why, since });
  }
  dispatch(world, 1, ["ready"]);
  assert.equal(reason()?.code, "awaiting_claim");
});

Deno.test("age() tells how long by the monotonic clock, whatever becomes of the wall clock", async () => {
  let aheadMs = 0;
  const { clock, ledger } = createLedgerWorld({ wallAheadMs: () => aheadMs });
  const entry = ledger.add(infoOf(1), { kind: "stored" }, clock.now() - 60_000);
  for (const ms of [3_600_000, -3_600_000, 0]) {
    aheadMs = ms;
    await clock.advance(1_000);
  }
  assert.deepEqual(ledger.age(entry), { totalMs: 63_000, inStateMs: 3_000 });
  aheadMs = -3_600_000;
  ledger.dispatch(entry.info.id, events.delivered ?? assert.fail());
  await clock.advance(500);
  assert.deepEqual(ledger.age(entry), { totalMs: 63_500, inStateMs: 500 });
  // Stored by a clock that was ahead of ours.
  const future = ledger.add(infoOf(2), { kind: "stored" }, clock.now() + 60_000);
  assert.equal(ledger.age(future).totalMs, 0);
});

Deno.test("write() bounds the journal of one that is tried again and again", () => {
  const world = createLedgerWorld();
  const entry = world.ledger.add(infoOf(1), { kind: "stored" }, 0);
  dispatch(world, 1, ["delivered", "seen"]);
  for (let n = 0; n < 2_000; n++) dispatch(world, 1, ["notReady"]);
  assert.ok(entry.journal.length <= 500);
  assert.equal(entry.journal[0]?.event, "received");
  dispatch(world, 1, ["cancelled", "settled", "messageGone", "gone", "deleted"]);
  assert.ok(entry.journal.length <= 60);
  assert.equal(entry.journal.at(-1)?.event, "cleaned");
});

Deno.test("dispatch() ends the waiting round when no executor is wanted any more", () => {
  const world = createLedgerWorld();
  const entry = world.ledger.add(infoOf(1), { kind: "stored" }, 0);
  dispatch(world, 1, ["delivered", "seen"]);
  const attempt = { controller: new AbortController(), working: false, again: false };
  entry.attempt = attempt;
  dispatch(world, 1, ["notReady"]);
  assert.equal(attempt.controller.signal.aborted, false);
  dispatch(world, 1, ["cancelled"]);
  assert.equal(attempt.controller.signal.aborted, true);
});

Deno.test("subscribe() calls back after each change until its signal aborts", () => {
  const world = createLedgerWorld();
  const stop = new AbortController();
  const seen: string[] = [];
  world.ledger.subscribe((entry) => void seen.push(entry.state.kind), stop.signal);
  const entry = world.ledger.add(infoOf(1), { kind: "stored" }, 0);
  dispatch(world, 1, ["delivered"]);
  world.ledger.touch(entry);
  stop.abort();
  dispatch(world, 1, ["seen"]);
  assert.deepEqual(seen, ["stored", "admitted", "admitted"]);
});

function messageOf(entry: Entry): StoredMessage {
  return {
    id: entry.info.id,
    backend: "pod",
    data: new Uint8Array(1_000_000),
    headers: {},
    sequence: 1,
    storedAt: 0,
    deliveries: 1,
    ack: () => Promise.resolve(),
    nak() {},
    terminate: () => Promise.resolve(),
    inProgress() {},
  };
}
