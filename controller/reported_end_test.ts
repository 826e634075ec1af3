import assert from "node:assert/strict";
import { silentLogger } from "../lib/logger.ts";
import { recordOf } from "../tests/contract/records_suite.ts";
import { createLedgerWorld, infoOf } from "../tests/support/ledger_world.ts";
import type { ExecutorName } from "./model/ids.ts";
import type { TaskRecord } from "./model/record.ts";
import type { RecordWriter } from "./record_writer.ts";
import { createEndKeeper, settlementOfLost } from "./reported_end.ts";

const signal = new AbortController().signal;
const step = { id: 0, result: "success", startedAt: 1, stoppedAt: 2, logIndex: 3, logLength: 4 };
const END = { result: "success", steps: [{ ...step, result: "success" }], row: null } as const;

function setup(first: Partial<TaskRecord> = {}) {
  const { clock, ledger } = createLedgerWorld();
  const info = infoOf(1);
  const executor = "ci-00-1" as ExecutorName;
  ledger.add(info, { kind: "running", executor, presence: "alive" }, clock.now());
  const world = {
    clock,
    record: recordOf(first),
    acts: true,
    /** What the bucket does. */
    write: (): Promise<void> => Promise.resolve(),
  };
  const change: RecordWriter["change"] = async (_entry, change) => {
    await world.write();
    return world.record = change(world.record);
  };
  const keep = createEndKeeper({
    clock,
    logger: silentLogger,
    ledger,
    writer: { change },
    guard() {
      if (!world.acts) throw new Error("This controller must not act any more");
    },
  });
  return { world, ledger, keep: (stop = signal) => keep(info.id, END, stop) };
}

Deno.test("endReported() records the end and its steps in one write", async () => {
  const { world, keep } = setup();
  await keep();
  assert.deepEqual(world.record.reported, { ...END, at: world.clock.now() });
  assert.deepEqual(world.record.steps, END.steps);
});

Deno.test("endReported() leaves a record that has its final state, and one that nobody runs, alone", async () => {
  const marked = setup({ terminal: { result: "cancelled", at: 1 } });
  await marked.keep();
  assert.equal(marked.world.record.reported, undefined);

  const ended = setup();
  ended.ledger.dispatch(infoOf(1).id, { kind: "final_accepted", result: "failure" });
  await ended.keep();
  assert.equal(ended.world.record.reported, undefined);
});

Deno.test("endReported() holds up no job's end while the record cannot be written", async () => {
  const failing = setup();
  failing.world.write = () => Promise.reject(new Error("away"));
  await failing.keep();

  const hanging = setup();
  hanging.world.write = () => new Promise(() => {});
  let done = false;
  const kept = hanging.keep().then(() => done = true);
  await hanging.world.clock.advance(1_999);
  assert.equal(done, false);
  await hanging.world.clock.advance(1);
  await kept;
});

Deno.test("endReported() rejects when the caller is gone, or this process may not act any more", async () => {
  const { world, keep } = setup();
  world.write = () => new Promise(() => {});
  const caller = new AbortController();
  const kept = keep(caller.signal);
  caller.abort(new DOMException("Gone", "AbortError"));
  await assert.rejects(kept, { name: "AbortError" });

  const fenced = setup();
  fenced.world.acts = false;
  await assert.rejects(fenced.keep(), /must not act/);
  const later = setup();
  later.world.write = () => {
    later.world.acts = false;
    return Promise.reject(new Error("conflict"));
  };
  await assert.rejects(later.keep(), /must not act/);
});

Deno.test("settlementOfLost() is what was reported, with its reason, else the failure", () => {
  const lost = { result: "failure", text: "lost", steps: [] } as const;
  assert.equal(settlementOfLost(undefined, lost), lost);
  assert.equal(settlementOfLost(recordOf(), lost), lost);
  const row = "Error: the job was interrupted";
  const interrupted = recordOf({ reported: { ...END, result: "failure", row, at: 5 } });
  assert.deepEqual(settlementOfLost(interrupted, lost), {
    result: "failure",
    steps: END.steps,
    text: row,
  });
  const green = settlementOfLost(recordOf({ reported: { ...END, at: 5 } }), lost);
  assert.equal(green.result, "success");
  assert.match(green.text, /reported success .* last row of its log may be missing/);
});
