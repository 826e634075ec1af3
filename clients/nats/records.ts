import type { Call } from "../../controller/backend.ts";
import { parseTaskId, type TaskId } from "../../controller/model/ids.ts";
import type { TaskRecord } from "../../controller/model/record.ts";
import { QueueError } from "../../controller/queue.ts";
import type { Records, Versioned } from "../../controller/records.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/logger.ts";
import { createBucket, type KeyValue } from "./bucket.ts";
import { EPOCH_KEY } from "./control_store.ts";
import type { NatsConnection } from "./connection.ts";
import { readRecord } from "./record_json.ts";

type Stored = Versioned<TaskRecord>;

/**
 * Records in the bucket, with a cache that own writes keep current. After {@link Records.list} the
 * cache knows every record, so that a task without one costs no question. A conflict drops what was
 * cached: the next read asks the server. The epoch is fenced twice: by the record (an older epoch
 * never replaces a newer one) and by the counter, whose changes are heard of within moments.
 */
export function createRecords(
  connection: NatsConnection,
  deps: { readonly clock: Clock; readonly logger: Logger },
): Records & Disposable {
  const bucket = createBucket(connection, deps);
  const logger = deps.logger.child({ component: "records" });
  const closing = new AbortController();
  const cache = new Map<TaskId, Stored>();
  /** Written or dropped since this listing began; null when none is under way. */
  let touched: Set<TaskId> | null = null;
  const doubtful = new Set<TaskId>();
  let complete = false;
  let epoch = 0;
  /** Own writes so far: a read that one of them overtook is not to be cached. */
  let writes = 0;
  let removals = 0;

  const keep = (task: TaskId, stored: Stored): Stored => {
    cache.set(task, stored);
    doubtful.delete(task);
    touched?.add(task);
    epoch = Math.max(epoch, stored.value.epoch);
    return stored;
  };
  const forget = (task: TaskId, known: boolean) => {
    cache.delete(task);
    touched?.add(task);
    if (known) doubtful.delete(task);
    else doubtful.add(task);
  };

  bucket.hint(EPOCH_KEY, () => {
    const call = { signal: closing.signal };
    bucket.get(EPOCH_KEY, call).then((stored) => {
      if (typeof stored?.value.epoch === "number") epoch = Math.max(epoch, stored.value.epoch);
    }).catch((error) => {
      if (!closing.signal.aborted) logger.warn("epoch cannot be read", { error });
    });
  }, closing.signal);

  const load = async (task: TaskId, call: Call): Promise<Stored | undefined> => {
    const before = writes;
    const found = parse(await bucket.get(keyOf(task), call));
    if (writes !== before) return found;
    if (found === undefined) forget(task, true);
    else keep(task, found);
    return found;
  };

  const fence = (task: TaskId, record: TaskRecord, stored: Stored | undefined) => {
    const newest = Math.max(epoch, stored?.value.epoch ?? 0);
    if (record.epoch >= newest) return;
    // The reader is to see the newer leader's record, not what we had cached.
    forget(task, false);
    throw new QueueError(
      "conflict",
      `Write record of task ${task}: epoch ${newest} leads, ours is ${record.epoch}`,
      { retryable: false },
    );
  };

  const write = async (task: TaskId, record: TaskRecord, revision: number, call: Call) => {
    try {
      const written = await bucket.put(keyOf(task), record, revision, call);
      writes++;
      return keep(task, { value: record, revision: written });
    } catch (error) {
      // Also when it was aborted: nobody knows what stands there now.
      writes++;
      forget(task, false);
      throw error;
    }
  };

  /** Removals leave markers behind, which are taken away a few hundred at a time. */
  const sweep = async (call: Call) => {
    removals = 0;
    try {
      await bucket.sweep(`${KEY_PREFIX}*`, call);
    } catch (error) {
      if (!call.signal.aborted) logger.warn("removed records cannot be swept", { error });
    }
  };

  const remove = async (task: TaskId, call: Call) => {
    let current = cache.get(task) ?? await load(task, call);
    while (current !== undefined) {
      if (await bucket.remove(keyOf(task), current.revision, call)) return;
      const newer: Stored | undefined = await load(task, call);
      if (newer !== undefined && newer.value.epoch > current.value.epoch) {
        throw new QueueError(
          "conflict",
          `Delete record of task ${task}: epoch ${newer.value.epoch} leads, ours is ${current.value.epoch}`,
          { retryable: false },
        );
      }
      current = newer;
    }
  };

  return {
    async get(task, call) {
      const cached = cache.get(task);
      if (cached !== undefined) return cached;
      if (complete && !doubtful.has(task)) return undefined;
      return await load(task, call);
    },
    async create(task, record, call) {
      fence(task, record, undefined);
      return await write(task, record, 0, call);
    },
    async update(task, record, revision, call) {
      const cached = cache.get(task);
      const current = cached?.revision === revision ? cached : await load(task, call);
      fence(task, record, current);
      if (current?.revision !== revision) {
        throw new QueueError(
          "conflict",
          `Write record of task ${task}: its revision is ${
            current?.revision ?? "none"
          }, not ${revision}`,
        );
      }
      return await write(task, record, revision, call);
    },
    async delete(task, call) {
      try {
        await remove(task, call);
      } catch (error) {
        writes++;
        forget(task, false);
        throw error;
      }
      writes++;
      forget(task, true);
      if (++removals >= SWEEP_EVERY) await sweep(call);
    },
    async list(call) {
      const during = new Set<TaskId>();
      touched = during;
      const found = new Map<TaskId, Stored>();
      for (const each of await bucket.list(`${KEY_PREFIX}*`, call)) {
        const task = parseTaskId(each.key.slice(KEY_PREFIX.length));
        const record = parse(each);
        if (task === undefined || record === undefined) {
          logger.error("record cannot be read", { key: each.key });
        } else found.set(task, record);
      }
      for (const task of [...cache.keys()]) {
        if (!during.has(task) && !found.has(task)) cache.delete(task);
      }
      for (const [task, record] of found) if (!during.has(task)) keep(task, record);
      touched = null;
      complete = true;
      await sweep(call);
      return found;
    },
    [Symbol.dispose]: () => closing.abort(),
  };
}

const KEY_PREFIX = "task.";
const SWEEP_EVERY = 500;

function keyOf(task: TaskId): string {
  return KEY_PREFIX + task;
}

function parse(stored: KeyValue | undefined): Stored | undefined {
  if (stored === undefined) return undefined;
  const value = readRecord(stored.value);
  return value === undefined ? undefined : { value, revision: stored.revision };
}
