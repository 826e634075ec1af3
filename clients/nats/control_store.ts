import type { BackendName } from "../../controller/model/ids.ts";
import type { Call } from "../../controller/backend.ts";
import { QueueError } from "../../controller/queue.ts";
import {
  type ControlFlags,
  type ControlStore,
  type FlagNote,
  type FlagStore,
  type ForgottenExecutor,
  NO_FLAGS,
} from "../../controller/records.ts";
import type { Clock } from "../../lib/clock.ts";
import { isObject } from "../../lib/json_object.ts";
import { createBucket } from "./bucket.ts";
import type { NatsConnection } from "./connection.ts";
import { type Json, numberAt, numberOf, textAt, textOf } from "./json.ts";

/** Key of the leader's epoch: `{"epoch": <number>}`. */
export const EPOCH_KEY = "control.epoch";
const TRIES = 100;

/** The flags of each backend (`control.<backend>`) in the bucket, for whoever changes them. */
export function createFlagStore(
  connection: NatsConnection,
  deps: { readonly clock: Clock },
): FlagStore {
  const bucket = createBucket(connection, deps);
  return {
    async read(backend, call) {
      const stored = await bucket.get(keyOf(backend), call);
      if (stored === undefined) return { flags: NO_FLAGS, revision: 0, operation: null };
      const { value, revision } = stored;
      return { flags: readFlags(value), revision, operation: textOf(value.operation) };
    },
    async write(backend, next, call) {
      const value = { ...next.flags, operation: next.operation };
      return { ...next, revision: await bucket.put(keyOf(backend), value, next.revision, call) };
    },
  };
}

/** Control flags (`control.<backend>`) and the epoch (`control.epoch`) in the bucket. */
export function createControlStore(
  connection: NatsConnection,
  deps: { readonly clock: Clock },
): ControlStore {
  const bucket = createBucket(connection, deps);
  const stored = createFlagStore(connection, deps);
  /** A lost epoch is at least that of every record: an older one's writes would all be refused. */
  const newestEpoch = async (value: Json | undefined, call: Call) => {
    if (value !== undefined) return epochOf(value);
    const records = await bucket.list("task.*", call);
    return records.reduce((newest, each) => Math.max(newest, epochOf(each.value)), 0);
  };
  return {
    flags: async (backend, call) => (await stored.read(backend, call)).flags,
    async takeOver(call) {
      for (let attempt = 0; attempt < TRIES; attempt++) {
        const stored = await bucket.get(EPOCH_KEY, call);
        const epoch = await newestEpoch(stored?.value, call) + 1;
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

function keyOf(backend: BackendName): string {
  return `control.${backend}`;
}

function epochOf(value: Json | undefined): number {
  return numberOf(value?.epoch) ?? 0;
}

/** A flag that is absent, or no object, is not set. */
function readFlags({ cordon, drain, capacity, label, forgotten }: Json): ControlFlags {
  return {
    cordon: isObject(cordon) ? noteOf(cordon) : null,
    drain: isObject(drain)
      ? {
        ...noteOf(drain),
        deadline: numberOf(drain.deadline),
        hold: drain.hold === true,
        ...typeof drain.operation === "string" ? { operation: drain.operation } : {},
      }
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
    ...Array.isArray(forgotten) ? { forgotten: forgotten.filter(isObject).map(forgottenOf) } : {},
  };
}

function forgottenOf(json: Json): ForgottenExecutor {
  return { ...noteOf(json), name: textAt(json, "name"), uid: textAt(json, "uid") };
}

function noteOf(flag: Json): FlagNote {
  return { by: textAt(flag, "by"), at: numberAt(flag, "at"), note: textAt(flag, "note") };
}
