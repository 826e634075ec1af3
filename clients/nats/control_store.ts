import { QueueError } from "../../controller/queue.ts";
import {
  type ControlFlags,
  type ControlStore,
  type FlagNote,
  NO_FLAGS,
} from "../../controller/records.ts";
import type { Clock } from "../../lib/clock.ts";
import { isObject } from "../../lib/json_object.ts";
import { createBucket } from "./bucket.ts";
import type { NatsConnection } from "./connection.ts";
import { type Json, numberAt, numberOf, textAt } from "./json.ts";

/** Key of the leader's epoch: `{"epoch": <number>}`. */
export const EPOCH_KEY = "control.epoch";
const TRIES = 100;

/** Control flags (`control.<backend>`) and the epoch (`control.epoch`) in the bucket. */
export function createControlStore(
  connection: NatsConnection,
  deps: { readonly clock: Clock },
): ControlStore {
  const bucket = createBucket(connection, deps);
  return {
    async flags(backend, call) {
      const stored = await bucket.get(`control.${backend}`, call);
      return stored === undefined ? NO_FLAGS : readFlags(stored.value);
    },
    async takeOver(call) {
      for (let attempt = 0; attempt < TRIES; attempt++) {
        const stored = await bucket.get(EPOCH_KEY, call);
        const epoch = epochOf(stored?.value) + 1;
        try {
          // `by` makes two leaders' writes differ, so that neither takes the other's for its own.
          const value = { epoch, by: crypto.randomUUID() };
          await bucket.put(EPOCH_KEY, value, stored?.revision ?? 0, call);
          return epoch;
        } catch (error) {
          if (!(error instanceof QueueError) || error.code !== "conflict") throw error;
        }
      }
      throw new QueueError("conflict", `Take over: the epoch was raised ${TRIES} times by others`);
    },
    async epoch(call) {
      return epochOf((await bucket.get(EPOCH_KEY, call))?.value);
    },
    watchEpoch(listener, signal) {
      bucket.hint(EPOCH_KEY, () => {
        // It waits while the server is away, so that only the end of the watch fails it.
        bucket.get(EPOCH_KEY, { signal }).then(
          (stored) => listener(epochOf(stored?.value)),
          () => {},
        );
      }, signal);
    },
  };
}

function epochOf(value: Json | undefined): number {
  return numberOf(value?.epoch) ?? 0;
}

/** A flag that is absent, or no object, is not set. */
function readFlags({ cordon, drain, capacity, label }: Json): ControlFlags {
  return {
    cordon: isObject(cordon) ? noteOf(cordon) : null,
    drain: isObject(drain)
      ? { ...noteOf(drain), deadline: numberOf(drain.deadline), hold: drain.hold === true }
      : null,
    capacity: isObject(capacity)
      ? {
        ...noteOf(capacity),
        value: numberAt(capacity, "value"),
        replaced: numberAt(capacity, "replaced"),
      }
      : null,
    label: isObject(label)
      ? {
        ...noteOf(label),
        value: textAt(label, "value"),
        replaced: textAt(label, "replaced"),
      }
      : null,
  };
}

function noteOf(flag: Json): FlagNote {
  return { by: textAt(flag, "by"), at: numberAt(flag, "at"), note: textAt(flag, "note") };
}
