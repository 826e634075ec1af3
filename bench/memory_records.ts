import type { TaskRecord } from "../controller/model/record.ts";
import { QueueError } from "../controller/queue.ts";
import type { Records, Versioned } from "../controller/records.ts";

/** Records in memory: what is left of the hand-over without their writes. */
export function createMemoryRecords(): Records {
  const records = new Map<string, Versioned<TaskRecord>>();
  let revision = 0;
  const put = (task: string, value: TaskRecord) => {
    const stored = { value, revision: ++revision };
    records.set(task, stored);
    return Promise.resolve(stored);
  };
  const conflict = () => Promise.reject(new QueueError("conflict", "Write record: it changed"));
  return {
    get: (task) => Promise.resolve(records.get(task)),
    create: (task, value) => records.has(task) ? conflict() : put(task, value),
    update: (task, value, expected) =>
      records.get(task)?.revision === expected ? put(task, value) : conflict(),
    delete(task) {
      records.delete(task);
      return Promise.resolve();
    },
    list: () => Promise.resolve(new Map()),
  };
}
