import type { Entry } from "./entry.ts";
import { taskIdOf } from "./model/ids.ts";
import type { TaskRecord } from "./model/record.ts";
import { QueueError } from "./queue.ts";
import type { Records } from "./records.ts";

/** Record writes of assignments: one after the other per assignment, each with our epoch. */
export interface RecordWriter {
  /** Makes the record of an assignment unless it has one; resolves to what stands there. */
  ensure(
    entry: Entry,
    first: Omit<TaskRecord, "epoch">,
    signal: AbortSignal,
  ): Promise<TaskRecord>;
  /** Replaces parts of the record; `change` sees the current one and may return it unchanged. */
  change(
    entry: Entry,
    change: (record: TaskRecord) => TaskRecord,
    signal: AbortSignal,
  ): Promise<TaskRecord>;
  /** Deletes it. */
  remove(entry: Entry, signal: AbortSignal): Promise<void>;
}

/**
 * Makes a {@link RecordWriter}. `onFenced` is called when a record carries a newer epoch than ours:
 * another controller leads, and this one must stop.
 */
export function createRecordWriter(deps: {
  readonly records: Records;
  epoch(): number;
  onFenced(detail: string): void;
}): RecordWriter {
  const { records } = deps;

  const serial = <T>(entry: Entry, operation: () => Promise<T>): Promise<T> => {
    const run = entry.writes.then(operation, operation);
    entry.writes = run.catch(() => {});
    return run;
  };

  /** What the server holds, after somebody else's write; refuses to go on when a newer leader wrote it. */
  const reload = async (entry: Entry, signal: AbortSignal) => {
    const current = await records.get(entry.info.taskId, { signal });
    if (current !== undefined && current.value.epoch > deps.epoch()) {
      const detail =
        `record of ${entry.info.id} carries epoch ${current.value.epoch}, ours is ${deps.epoch()}`;
      deps.onFenced(detail);
      throw new QueueError("conflict", `Write record: ${detail}`, { retryable: false });
    }
    entry.record = current ?? null;
    return current;
  };

  return {
    ensure: (entry, first, signal) =>
      serial(entry, async () => {
        if (entry.record !== null) return entry.record.value;
        try {
          entry.record = await records.create(
            entry.info.taskId,
            { ...first, epoch: deps.epoch() },
            { signal },
          );
        } catch (error) {
          if (!(error instanceof QueueError) || error.code !== "conflict") throw error;
          const current = await reload(entry, signal);
          if (current === undefined) throw error;
        }
        if (entry.record === null) throw new QueueError("conflict", "Create record: it vanished");
        return entry.record.value;
      }),
    change: (entry, change, signal) =>
      serial(entry, async () => {
        for (let attempt = 0; attempt < 5; attempt++) {
          const current = entry.record ?? await reload(entry, signal);
          if (current === undefined || current === null) {
            throw new QueueError("conflict", `Write record of ${entry.info.id}: there is none`, {
              retryable: false,
            });
          }
          const next = change(current.value);
          if (next === current.value) return next;
          try {
            entry.record = await records.update(
              entry.info.taskId,
              { ...next, epoch: deps.epoch() },
              current.revision,
              { signal },
            );
            return entry.record.value;
          } catch (error) {
            if (!(error instanceof QueueError) || error.code !== "conflict") throw error;
            await reload(entry, signal);
          }
        }
        throw new QueueError("conflict", `Write record of ${entry.info.id}: lost five times`);
      }),
    remove: (entry, signal) =>
      serial(entry, async () => {
        const task = taskIdOf(entry.info.id);
        if (task !== undefined) await records.delete(task, { signal });
        entry.record = null;
      }),
  };
}
