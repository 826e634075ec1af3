import type { Call } from "../../controller/backend.ts";
import type { BackendName, TaskId } from "../../controller/model/ids.ts";
import type { TaskRecord } from "../../controller/model/record.ts";
import { QueueError } from "../../controller/queue.ts";
import {
  type ControlFlags,
  type ControlStore,
  type FlagStore,
  NO_FLAGS,
  type Records,
  type StoredFlags,
  type Versioned,
} from "../../controller/records.ts";
import { onAbort } from "../../lib/abortable.ts";

/** Switches; set them at any time. */
export interface FakeStoreFaults {
  /** Every method throws `unavailable`. */
  away: boolean;
  /** Called before each write: throw, wait, or write something else first. */
  beforeWrite: ((task: TaskId, record: TaskRecord) => void | Promise<void>) | null;
  /** Called when a write is done, before it is answered: throw to lose the answer. */
  afterWrite: (() => void) | null;
}

/** The bucket in memory: what several controllers share. */
export interface FakeStore {
  readonly faults: FakeStoreFaults;
  /** What is stored. */
  readonly tasks: ReadonlyMap<TaskId, Versioned<TaskRecord>>;
  /** One controller's view of the records. */
  records(): Records;
  readonly control: ControlStore;
  readonly flags: FlagStore;
  /** Another writer: the record stays, its revision does not. */
  touch(task: TaskId): void;
  /** The bucket is deleted and made again, with nothing in it; or one record of it. */
  lose(task?: TaskId): void;
  /** What an operator sets. */
  setFlags(backend: BackendName, flags: Partial<ControlFlags>): void;
}

/** Makes a {@link FakeStore}. */
export function createFakeStore(): FakeStore {
  const tasks = new Map<TaskId, Versioned<TaskRecord>>();
  const flags = new Map<BackendName, StoredFlags>();
  const faults: FakeStoreFaults = { away: false, beforeWrite: null, afterWrite: null };
  let revision = 0;
  let epoch = 0;
  const watchers = new Set<(epoch: number) => void>();

  const reach = async ({ signal }: Call) => {
    await Promise.resolve();
    signal.throwIfAborted();
    if (faults.away) throw new QueueError("unavailable", "Ask the fake bucket: it is away");
  };

  const write = async (task: TaskId, record: TaskRecord, expected: number, call: Call) => {
    await reach(call);
    await faults.beforeWrite?.(task, record);
    const current = tasks.get(task);
    const newest = Math.max(epoch, current?.value.epoch ?? 0);
    if (record.epoch < newest) {
      throw new QueueError("conflict", `Write record of task ${task}: epoch ${newest} leads`, {
        retryable: false,
      });
    }
    if ((current?.revision ?? 0) !== expected) {
      throw new QueueError("conflict", `Write record of task ${task}: not revision ${expected}`);
    }
    const written = { value: structuredClone(record), revision: ++revision };
    tasks.set(task, written);
    faults.afterWrite?.();
    return written;
  };

  return {
    faults,
    tasks,
    touch(task) {
      const current = tasks.get(task);
      if (current !== undefined) tasks.set(task, { ...current, revision: ++revision });
    },
    lose(task) {
      if (task !== undefined) return void tasks.delete(task);
      tasks.clear();
      flags.clear();
      epoch = 0;
    },
    setFlags(backend, changes) {
      const next = { ...NO_FLAGS, ...flags.get(backend)?.flags, ...changes };
      flags.set(backend, { flags: next, revision: ++revision, operation: null });
    },
    records: () => ({
      async get(task, call) {
        await reach(call);
        return tasks.get(task);
      },
      create: (task, record, call) => write(task, record, 0, call),
      update: write,
      async delete(task, call) {
        await reach(call);
        tasks.delete(task);
      },
      async list(call) {
        await reach(call);
        return new Map(tasks);
      },
    }),
    flags: {
      async read(backend, call) {
        await reach(call);
        return flags.get(backend) ?? { flags: NO_FLAGS, revision: 0, operation: null };
      },
      async write(backend, next, call) {
        await reach(call);
        if ((flags.get(backend)?.revision ?? 0) !== next.revision) {
          throw new QueueError("conflict", `Write flags of ${backend}: not over ${next.revision}`);
        }
        const written = { ...next, revision: ++revision };
        flags.set(backend, written);
        return written;
      },
    },
    control: {
      async flags(backend, call) {
        await reach(call);
        return flags.get(backend)?.flags ?? NO_FLAGS;
      },
      async takeOver(call) {
        await reach(call);
        if (epoch === 0) {
          for (const { value } of tasks.values()) epoch = Math.max(epoch, value.epoch);
        }
        epoch++;
        for (const listener of watchers) listener(epoch);
        return epoch;
      },
      async epoch(call) {
        await reach(call);
        return epoch;
      },
      watchEpoch(listener, signal) {
        watchers.add(listener);
        onAbort(signal, () => watchers.delete(listener));
      },
    },
  };
}
