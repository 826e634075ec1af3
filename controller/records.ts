import type { Call } from "./backend.ts";
import type { BackendName, TaskId } from "./model/ids.ts";
import type { TaskRecord } from "./model/record.ts";

/** A record with the revision that a write must name. */
export interface Versioned<T> {
  readonly value: T;
  readonly revision: number;
}

/**
 * Records of tasks, `task.<id>` in the KV bucket `CI_RUNNER_STATE`. Writes are compare-and-set and
 * throw `QueueError` with code `conflict` when the revision is not the current one, or when the
 * stored record carries a newer epoch. Reads may come from a cache that this process's own writes
 * keep current: only the leader writes.
 */
export interface Records {
  /** The record, or undefined. */
  get(task: TaskId, call: Call): Promise<Versioned<TaskRecord> | undefined>;
  /** Makes it; `conflict` if there is one. */
  create(task: TaskId, record: TaskRecord, call: Call): Promise<Versioned<TaskRecord>>;
  /** Replaces it. */
  update(
    task: TaskId,
    record: TaskRecord,
    revision: number,
    call: Call,
  ): Promise<Versioned<TaskRecord>>;
  /** Deletes it. Absent is success. */
  delete(task: TaskId, call: Call): Promise<void>;
  /** All of them, read from the server. */
  list(call: Call): Promise<Map<TaskId, Versioned<TaskRecord>>>;
}

/** Who set a flag, when and why. */
export interface FlagNote {
  readonly by: string;
  readonly at: number;
  readonly note: string;
}

/** What operators have set for one backend (`control.<backend>` in the same bucket). */
export interface ControlFlags {
  readonly cordon: FlagNote | null;
  readonly drain:
    | (FlagNote & {
      readonly deadline: number | null;
      readonly hold: boolean;
      /** Id of the operation that tells how far it is; absent when somebody else has set it. */
      readonly operation?: string;
    })
    | null;
  /** `replaced` is the configured value that was overridden: a changed configuration wins. */
  readonly capacity: (FlagNote & { readonly value: number; readonly replaced: number }) | null;
  readonly label: (FlagNote & { readonly value: string; readonly replaced: string }) | null;
  /** Executors that nobody could account for and that were given up: they hold no slot any more. */
  readonly forgotten?: readonly ForgottenExecutor[];
}

/** An executor without an assignment whose slot was given to others; its UID is never used again. */
export interface ForgottenExecutor extends FlagNote {
  readonly name: string;
  readonly uid: string;
}

/** Nothing set. */
export const NO_FLAGS: ControlFlags = { cordon: null, drain: null, capacity: null, label: null };

/** Flags as they are stored. */
export interface StoredFlags {
  readonly flags: ControlFlags;
  /** What a write must name; 0 when none were ever set. */
  readonly revision: number;
  /** Id of the operation that wrote them; null when there was none. */
  readonly operation: string | null;
}

/** The flags for whoever changes them: operators' actions on the leader. */
export interface FlagStore {
  /** What stands there. Throws while it cannot be read. */
  read(backend: BackendName, call: Call): Promise<StoredFlags>;
  /**
   * Writes over `next.revision` and resolves to what stands there then; `QueueError` `conflict` when
   * another revision does.
   */
  write(backend: BackendName, next: StoredFlags, call: Call): Promise<StoredFlags>;
}

/** Control flags and the epoch, in the KV bucket. */
export interface ControlStore {
  /** Flags of a backend; {@link NO_FLAGS} if none were ever set. Throws while they cannot be read. */
  flags(backend: BackendName, call: Call): Promise<ControlFlags>;
  /** Raises the epoch by compare-and-set and returns it: from now on older epochs' writes are refused. */
  takeOver(call: Call): Promise<number>;
  /** The stored epoch; 0 if there never was a leader. */
  epoch(call: Call): Promise<number>;
  /** Calls back with the stored epoch whenever it may have been raised, until aborted. */
  watchEpoch(listener: (epoch: number) => void, signal: AbortSignal): void;
}
