import assert from "node:assert/strict";
import { createLedgerWorld, infoOf } from "../tests/support/ledger_world.ts";
import { events } from "../tests/support/state_events.ts";
import { createLabelState } from "./label_state.ts";
import { NO_FLAGS } from "./records.ts";

function setup() {
  const world = createLedgerWorld();
  const labels = createLabelState({
    engine: { ledger: world.ledger, flags: () => NO_FLAGS },
    clock: world.clock,
    vmLabel: "vm-dev",
    enabled: () => true,
    pendingLimit: () => 4,
  });
  const store = (...tasks: readonly number[]) => {
    for (const task of tasks) world.ledger.add(infoOf(task), { kind: "stored" }, world.clock.now());
  };
  return { ...world, labels, store };
}

Deno.test("labels() withdraws a backend's label at its limit and gives it back at half of it", () => {
  const { labels, store, ledger } = setup();
  const end = (task: number) => {
    for (const name of ["cancelled", "settled", "messageGone", "deleted"]) {
      ledger.dispatch(infoOf(task).id, events[name] ?? { kind: "held" });
    }
  };
  store(1, 2, 3);
  assert.deepEqual(labels.labels(), ["self-hosted", "pod", "vm-dev"]);
  store(4);
  assert.deepEqual(labels.labels(), ["self-hosted", "vm-dev"]);
  assert.equal(labels.withdrawn("pod"), "backlog");
  end(1);
  assert.deepEqual(labels.labels(), ["self-hosted", "vm-dev"]);
  end(2);
  assert.deepEqual(labels.labels(), ["self-hosted", "pod", "vm-dev"]);
});

Deno.test("changed() resolves when a wait has become too long, without any event", async () => {
  const { labels, store, clock } = setup();
  const stop = new AbortController();
  store(1);
  labels.labels();
  const running = labels.run(stop.signal);
  let changed = false;
  const change = labels.changed(stop.signal).then(() => changed = true);
  await clock.advance(19 * 60_000);
  assert.equal(changed, false);
  await clock.advance(2 * 60_000);
  assert.equal(changed, true);
  await change;
  assert.deepEqual(labels.labels(), ["self-hosted", "vm-dev"]);
  stop.abort();
  await clock.advance(0);
  await running;
});

Deno.test("changed() rejects when it is aborted", async () => {
  const { labels } = setup();
  const stop = new AbortController();
  const change = labels.changed(stop.signal);
  stop.abort(new Error("stop"));
  await assert.rejects(change, /stop/);
});
