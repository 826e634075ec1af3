import assert from "node:assert/strict";
import { silentLogger } from "../lib/logger.ts";
import { createLedgerWorld, infoOf } from "../tests/support/ledger_world.ts";
import { takeTurn } from "./entry.ts";
import { endExecutors } from "./farewell.ts";
import type { ExecutorName } from "./model/ids.ts";
import type { RecordWriter } from "./record_writer.ts";
import type { Worker } from "./worker.ts";

const NAME = "ci-1" as ExecutorName;

/** Ends the executors of a ledger with one that is made, of whose turn nobody knows how long it takes. */
async function setup() {
  const { clock, ledger } = createLedgerWorld();
  const entry = ledger.add(infoOf(1), { kind: "starting", executor: NAME }, clock.now());
  const removed: string[] = [];
  const endTurn = await takeTurn(entry);
  const worker: Pick<Worker, "remove"> = {
    remove({ info }) {
      removed.push(info.id);
      return Promise.resolve("gone");
    },
  };
  const limit = new AbortController();
  const ending = endExecutors({
    ledger,
    clock,
    logger: silentLogger,
    writer: {} as RecordWriter,
    worker: () => worker as Worker,
    closeClaims: () => Promise.resolve(),
    run() {},
  }, limit.signal);
  return { clock, entry, removed, endTurn, limit, ending };
}

Deno.test("endExecutors() ends when every executor is gone, whatever other work on one waits for", async () => {
  const { clock, entry, removed, endTurn, ending } = await setup();
  await clock.advance(1_900);
  assert.deepEqual(removed, [], "it is given time");
  await clock.advance(200);
  await ending;
  assert.deepEqual(removed, [entry.info.id]);
  let begun = false;
  const next = takeTurn(entry).then((end) => {
    begun = true;
    end();
  });
  await clock.advance(0);
  assert.ok(!begun, "who has given up does not let others in before their time");
  endTurn();
  await next;
});

Deno.test("endExecutors() ends with the signal although other work on an executor does not", async () => {
  const { clock, entry, endTurn, limit, ending } = await setup();
  await clock.advance(500);
  limit.abort(new DOMException("Long enough", "TimeoutError"));
  await ending;
  endTurn();
  (await takeTurn(entry))();
});
