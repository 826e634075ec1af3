import type { Action } from "./action_kinds.ts";
import type { Call } from "../backend.ts";
import type { OperationQuery } from "../views/operating_views.ts";
import type { Role } from "../model/role.ts";
import { iso, isoOrNull } from "../views/view_of.ts";
import type { OperationView, Page } from "../views/views.ts";

/**
 * One action as it is kept in the bucket, `operation.<id>`: enough to go on with it after a restart,
 * and to show afterwards who did what. Times are milliseconds since the epoch.
 */
export interface Operation {
  readonly id: string;
  readonly action: Action;
  /** A backend, an assignment, or `leader`. */
  readonly target: string;
  readonly state: OperationView["state"];
  /** As last seen; of a running one it is read from the ledger. */
  readonly progress: OperationView["progress"];
  readonly startedAt: number;
  readonly endedAt: number | null;
  readonly by: string;
  readonly role: Role;
  readonly note: string;
  readonly requestId: string;
  /** Of action and note: the same `Idempotency-Key` with another one is refused. */
  readonly fingerprint: string;
  /** What stood there before, and what stands there since; JSON for people. */
  readonly before: unknown;
  readonly after: unknown;
  /** Why it failed, or what it waits for too long. */
  readonly error: string | null;
}

/** An operation with the revision that its next write must name. */
export interface StoredOperation {
  readonly operation: Operation;
  readonly revision: number;
}

/** Where operations are kept. Methods wait while the store is away; all throw `QueueError`. */
export interface OperationStore {
  /** Makes it; `conflict` when the id is taken. */
  create(operation: Operation, call: Call): Promise<StoredOperation>;
  /** Replaces it over its revision; `conflict` when another one stands there. */
  update(stored: StoredOperation, call: Call): Promise<StoredOperation>;
  get(id: string, call: Call): Promise<StoredOperation | undefined>;
  /** All of them; what another release has written and cannot be read here is left out. */
  list(call: Call): Promise<readonly StoredOperation[]>;
  /** Removes it unless it was written again. */
  remove(stored: StoredOperation, call: Call): Promise<void>;
  /** Takes away what removals have left behind. */
  sweep(call: Call): Promise<void>;
}

/** In the order of lists. */
export function newestFirst(operations: readonly Operation[]): readonly Operation[] {
  return operations.toSorted((a, b) => b.startedAt - a.startedAt || (a.id < b.id ? 1 : -1));
}

/**
 * A page of operations, which must be in the order of {@link newestFirst}. The cursor is the start and the id of the last of the page
 * before. Throws a `RangeError` when it is none of ours.
 */
export function operationsPage(
  all: readonly Operation[],
  { target, state, cursor, limit }: OperationQuery,
): Page<OperationView> {
  const matching = all.filter((each) =>
    (target === undefined || each.target.toLowerCase() === target.toLowerCase()) &&
    (state === undefined || each.state === state)
  );
  const after = cursor === null ? null : readCursor(cursor);
  const rest = after === null
    ? matching
    : matching.filter(({ startedAt, id }) =>
      startedAt < after.startedAt || (startedAt === after.startedAt && id < after.id)
    );
  const items = rest.slice(0, limit);
  const last = items.at(-1);
  return {
    items: items.map(operationView),
    nextCursor: last !== undefined && rest.length > limit ? `${last.startedAt}_${last.id}` : null,
    total: matching.length,
  };
}

function readCursor(cursor: string): { readonly startedAt: number; readonly id: string } {
  const match = /^([0-9]{1,16})_(op-[0-9a-f]{1,64})$/.exec(cursor);
  if (match === null) throw new RangeError(`Read cursor: "${cursor}" is none of ours`);
  return { startedAt: Number(match[1]), id: match[2] ?? "" };
}

/** An operation as pages and API show it. */
export function operationView(operation: Operation): OperationView {
  const { id, action, target, state, progress, by, note, before, after, error } = operation;
  return {
    id,
    action: action.kind,
    target,
    state,
    progress,
    startedAt: iso(operation.startedAt),
    endedAt: isoOrNull(operation.endedAt),
    by,
    note,
    before: before ?? null,
    after: after ?? null,
    error,
  };
}
