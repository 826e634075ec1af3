import { onAbort } from "../../lib/abortable.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/logger.ts";
import {
  newestFirst,
  type Operation,
  type OperationStore,
  type StoredOperation,
} from "./operation.ts";
import { QueueError } from "../queue.ts";

/** Called with each change; `old` is null for a new one. Must not throw. */
export type OperationListener = (old: Operation | null, now: Operation) => void;

/** What of an operation changes while it goes on. */
export type OperationChange = Partial<
  Pick<Operation, "state" | "progress" | "before" | "after" | "error" | "endedAt">
>;

/** What became of {@link Operations.begin}. */
export type Begun =
  | { readonly kind: "begun"; readonly operation: Operation }
  /** Its id is taken: the action was sent before. */
  | { readonly kind: "known"; readonly operation: Operation };

/** The operations of this registration: kept in the bucket, read from memory. */
export interface Operations {
  /** Reads all of them; nothing is known before. Resolves to those that are still running. */
  load(signal: AbortSignal): Promise<readonly Operation[]>;
  /** Writes a new one. Rejects with `QueueError`, or the signal's reason: then it may be stored or not. */
  begin(operation: Operation, signal: AbortSignal): Promise<Begun>;
  /** Writes a change; resolves to what stands there now. An operation that has ended stays as it is. */
  change(id: string, change: OperationChange, signal: AbortSignal): Promise<Operation>;
  /** Keeps progress and error of a running one in memory only: both are read from the ledger. */
  show(id: string, change: Pick<OperationChange, "progress" | "error">): void;
  get(id: string): Operation | undefined;
  /** Reads it from the store, for one whose writing was cut short; undefined if it is not there. */
  reload(id: string, signal: AbortSignal): Promise<Operation | undefined>;
  /** Newest first. */
  list(): readonly Operation[];
  subscribe(listener: OperationListener, signal: AbortSignal): void;
}

/** Ended operations that are kept, and for how long. */
const KEEP = 500;
const KEEP_MS = 7 * 86_400_000;
/** So many are removed together: each removal is a write, and a look at all that are there. */
const AT_ONCE = 50;
const TRIES = 5;

/** Makes {@link Operations} of which none is known yet. */
export function createOperations(deps: {
  readonly store: OperationStore;
  readonly clock: Pick<Clock, "now">;
  readonly logger: Logger;
}): Operations {
  const { store, clock } = deps;
  const known = new Map<string, StoredOperation>();
  const listeners = new Set<OperationListener>();

  const keep = (stored: StoredOperation) => {
    const { id } = stored.operation;
    const old = known.get(id)?.operation ?? null;
    known.set(id, stored);
    if (old === null || JSON.stringify(old) !== JSON.stringify(stored.operation)) {
      for (const listener of listeners) listener(old, stored.operation);
    }
    return stored.operation;
  };

  const list = () => newestFirst([...known.values()].map(({ operation }) => operation));

  /** Best effort, many at a time: what stays is removed after a later action. */
  const prune = async (signal: AbortSignal) => {
    const ended = list().filter(({ endedAt }) => endedAt !== null);
    const old = clock.now() - KEEP_MS;
    const late = ended.filter(({ startedAt }) => startedAt < old).length;
    if (ended.length < KEEP + AT_ONCE && late < AT_ONCE) return;
    for (const [place, { id, startedAt }] of ended.entries()) {
      const stored = known.get(id);
      if (stored === undefined || (place < KEEP && startedAt >= old)) continue;
      await store.remove(stored, { signal });
      known.delete(id);
    }
    await store.sweep({ signal });
  };

  const reload = async (id: string, signal: AbortSignal) => {
    const stored = await store.get(id, { signal });
    return stored === undefined ? undefined : keep(stored);
  };

  return {
    async load(signal) {
      for (const stored of await store.list({ signal })) keep(stored);
      return list().filter(({ endedAt }) => endedAt === null);
    },
    async begin(operation, signal) {
      const before = known.get(operation.id);
      if (before !== undefined) return { kind: "known", operation: before.operation };
      try {
        const stored = await store.create(operation, { signal });
        keep(stored);
      } catch (error) {
        if (!isConflict(error)) throw error;
        const there = await reload(operation.id, signal);
        if (there === undefined) throw error;
        return { kind: "known", operation: there };
      }
      await prune(signal).catch((error) => {
        if (!signal.aborted) deps.logger.warn("old operations stay", { error });
      });
      return { kind: "begun", operation };
    },
    async change(id, change, signal) {
      for (let attempt = 0; attempt < TRIES; attempt++) {
        const current = known.get(id);
        if (current === undefined) throw new RangeError(`Change operation "${id}": there is none`);
        const { state } = current.operation;
        const lifts = state === "done" && change.state === "undone";
        if (state !== "running" && !lifts) return current.operation;
        const operation = { ...current.operation, ...change };
        try {
          return keep(await store.update({ ...current, operation }, { signal }));
        } catch (error) {
          if (!isConflict(error)) throw error;
          await reload(id, signal);
        }
      }
      throw new QueueError("conflict", `Write operation "${id}": lost ${TRIES} times`);
    },
    show(id, change) {
      const current = known.get(id);
      if (current === undefined || current.operation.state !== "running") return;
      keep({ ...current, operation: { ...current.operation, ...change } });
    },
    get: (id) => known.get(id)?.operation,
    reload,
    list,
    subscribe(listener, signal) {
      if (signal.aborted) return;
      listeners.add(listener);
      onAbort(signal, () => listeners.delete(listener));
    },
  };
}

function isConflict(error: unknown): boolean {
  return error instanceof QueueError && error.code === "conflict";
}
