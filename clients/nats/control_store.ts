import { QueueError } from "../../controller/queue.ts";
import {
  type ControlFlags,
  type ControlStore,
  type FlagNote,
  NO_FLAGS,
} from "../../controller/records.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Json } from "./api.ts";
import { createBucket } from "./bucket.ts";
import type { NatsConnection } from "./connection.ts";

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
  };
}

function epochOf(value: Json | undefined): number {
  return typeof value?.epoch === "number" ? value.epoch : 0;
}

function readFlags(json: Json): ControlFlags {
  const drain = note(json.drain);
  const capacity = note(json.capacity);
  const label = note(json.label);
  return {
    cordon: note(json.cordon),
    drain: drain === null ? null : {
      ...drain,
      deadline: number(at(json.drain, "deadline")),
      hold: at(json.drain, "hold") === true,
    },
    capacity: capacity === null ? null : {
      ...capacity,
      value: number(at(json.capacity, "value")) ?? 0,
      replaced: number(at(json.capacity, "replaced")) ?? 0,
    },
    label: label === null ? null : {
      ...label,
      value: text(at(json.label, "value")),
      replaced: text(at(json.label, "replaced")),
    },
  };
}

function note(value: unknown): FlagNote | null {
  if (typeof value !== "object" || value === null) return null;
  return {
    by: text(at(value, "by")),
    at: number(at(value, "at")) ?? 0,
    note: text(at(value, "note")),
  };
}

function at(value: unknown, name: string): unknown {
  if (typeof value !== "object" || value === null) return undefined;
  return Object.getOwnPropertyDescriptor(value, name)?.value;
}

function number(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
