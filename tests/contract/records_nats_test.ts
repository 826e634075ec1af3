import assert from "node:assert/strict";
import { createBucket } from "../../clients/nats/bucket.ts";
import {
  createControlStore,
  createFlagStore,
  EPOCH_KEY,
} from "../../clients/nats/control_store.ts";
import { createRecords } from "../../clients/nats/records.ts";
import { DEPS, openNatsWorld } from "../support/nats_world.ts";
import { recordOf, recordsContract } from "./records_suite.ts";

recordsContract("NATS records", async () => {
  await using stack = new AsyncDisposableStack();
  const world = stack.use(await openNatsWorld());
  const elsewhere = stack.use(world.connect());
  await elsewhere.ready({ signal: AbortSignal.timeout(10_000) });
  const records = stack.use(createRecords(world.connection, DEPS));
  const other = stack.use(createRecords(elsewhere, DEPS));
  const bucket = createBucket(world.connection, DEPS);
  const owned = stack.move();
  return {
    records,
    other,
    control: createControlStore(world.connection, DEPS),
    flags: createFlagStore(world.connection, DEPS),
    async setFlags(flags) {
      await bucket.put("control.pod", flags, 0, { signal: AbortSignal.timeout(5_000) });
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
});

Deno.test("takeOver() is above every record when the epoch alone is lost", async () => {
  await using world = await openNatsWorld();
  const call = { signal: AbortSignal.timeout(10_000) };
  const bucket = createBucket(world.connection, DEPS);
  const control = createControlStore(world.connection, DEPS);
  for (const [task, epoch] of [[1, 4], [2, 7]]) {
    await bucket.put(`task.${task}`, recordOf({ epoch: epoch ?? 0 }), 0, call);
  }
  await bucket.put(EPOCH_KEY, { epoch: 7 }, 0, call);
  const { revision = 0 } = await bucket.get(EPOCH_KEY, call) ?? {};
  await bucket.remove(EPOCH_KEY, revision, call);
  assert.equal(await control.takeOver(call), 8);
  assert.equal(await control.takeOver(call), 9);
});
