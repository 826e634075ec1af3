import { createBucket } from "../../clients/nats/bucket.ts";
import { createControlStore, createFlagStore } from "../../clients/nats/control_store.ts";
import { createRecords } from "../../clients/nats/records.ts";
import { DEPS, openNatsWorld } from "../support/nats_world.ts";
import { recordsContract } from "./records_suite.ts";

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
