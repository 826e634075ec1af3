import type { Entry } from "./entry.ts";
import { taskIdOf } from "./model/ids.ts";
import type { TaskRecord } from "./model/record.ts";
import { QueueError } from "./queue.ts";
import type { ControlStore, Records, Versioned } from "./records.ts";

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
 * Makes a {@link RecordWriter}. A write that loses is judged by what the server holds: `onFenced` is
 * called when a newer epoch than ours stands there, in the record or as the leader's own: another
 * controller leads, and this one must stop. A record that somebody else deleted is made again from
 * memory, so that a claim is never forgotten.
 */
export function createRecordWriter(deps: {
  readonly records: Records;
  readonly control: Pick<ControlStore, "epoch">;
  epoch(): number;
  onFenced(detail: string): void;
}): RecordWriter {
  const { records } = deps;

  const serial = <T>(entry: Entry, operation: () => Promise<T>): Promise<T> => {
    const run = entry.writes.then(operation, operation);
    entry.writes = run.catch(() => {});
    return run;
  };

  /** What the server holds, after a write that lost; refuses to go on when a newer leader is there. */
  const reload = async (entry: Entry, signal: AbortSignal) => {
    const current = await records.get(entry.info.taskId, { signal });
    const leading = await deps.control.epoch({ signal });
    const newest = Math.max(leading, current?.value.epoch ?? 0);
    if (newest > deps.epoch()) {
      const detail = `record of ${entry.info.id}: epoch ${newest} leads, ours is ${deps.epoch()}`;
      deps.onFenced(detail);
      throw new QueueError("conflict", `Write ${detail}`, { retryable: false });
    }
    return current;
  };

  const put = (
    entry: Entry,
    { value, revision }: Versioned<TaskRecord>,
    signal: AbortSignal,
  ) => {
    const record = { ...value, epoch: deps.epoch() };
    const { taskId } = entry.info;
    return revision === 0
      ? records.create(taskId, record, { signal })
      : records.update(taskId, record, revision, { signal });
  };

  return {
    ensure: (entry, first, signal) =>
      serial(entry, async () => {
        if (entry.record !== null) return entry.record.value;
        const made = { value: { ...first, epoch: deps.epoch() }, revision: 0 };
        try {
          entry.record = await put(entry, made, signal);
        } catch (error) {
          if (!isConflict(error)) throw error;
          const current = await reload(entry, signal);
          if (current === undefined) throw error;
          entry.record = current;
        }
        return entry.record.value;
      }),
    change: (entry, change, signal) =>
      serial(entry, async () => {
        for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
          const current = entry.record;
          if (current === null) {
            throw new QueueError("conflict", `Write record of ${entry.info.id}: there is none`, {
              retryable: false,
            });
          }
          const next = change(current.value);
          if (next === current.value) return next;
          try {
            entry.record = await put(entry, { ...current, value: next }, signal);
            return entry.record.value;
          } catch (error) {
            if (!isConflict(error)) throw error;
            entry.record = await reload(entry, signal) ?? { ...current, revision: 0 };
          }
        }
        throw new QueueError("conflict", `Write record of ${entry.info.id}: lost five times`);
      }),
    remove: (entry, signal) =>
      serial(entry, async () => {
        const task = taskIdOf(entry.info.id);
        try {
          if (task !== undefined) await records.delete(task, { signal });
        } catch (error) {
          if (isConflict(error)) await reload(entry, signal);
          throw error;
        }
        if (entry.record !== null) {
          const { uid, nonce, failures, epoch } = entry.record.value;
          entry.remains = { uid, nonce, failures, epoch };
        }
        entry.record = null;
      }),
  };
}

const MAX_ATTEMPTS = 5;

function isConflict(error: unknown): boolean {
  return error instanceof QueueError && error.code === "conflict";
}
