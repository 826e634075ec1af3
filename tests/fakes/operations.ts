import type { AuditEntry, AuditLog } from "../../controller/actions/audit.ts";
import type { Call } from "../../controller/backend.ts";
import type { OperationStore, StoredOperation } from "../../controller/actions/operation.ts";
import { QueueError } from "../../controller/queue.ts";
import { untilAborted } from "../../lib/abortable.ts";

/** Operations in memory: what several controllers share. */
export interface FakeOperationStore extends OperationStore {
  readonly faults: { away: boolean };
  readonly stored: ReadonlyMap<string, StoredOperation>;
}

/** Makes an empty {@link FakeOperationStore}. */
export function createFakeOperationStore(): FakeOperationStore {
  const stored = new Map<string, StoredOperation>();
  const faults = { away: false };
  let revision = 0;
  const reach = async ({ signal }: Call) => {
    await Promise.resolve();
    signal.throwIfAborted();
    // As the real one, it waits while the server is away.
    while (faults.away) {
      await untilAborted(signal);
    }
  };
  const put = async ({ operation, revision: over }: StoredOperation, call: Call) => {
    await reach(call);
    const { id } = operation;
    if ((stored.get(id)?.revision ?? 0) !== over) {
      throw new QueueError("conflict", `Write operation "${id}": not over ${over}`);
    }
    const written = { operation: structuredClone(operation), revision: ++revision };
    stored.set(id, written);
    return written;
  };
  return {
    faults,
    stored,
    create: (operation, call) => put({ operation, revision: 0 }, call),
    update: put,
    async get(id, call) {
      await reach(call);
      return stored.get(id);
    },
    async list(call) {
      await reach(call);
      return [...stored.values()];
    },
    async remove({ operation: { id }, revision: over }, call) {
      await reach(call);
      if (stored.get(id)?.revision === over) stored.delete(id);
    },
    sweep: reach,
  };
}

/** An audit in memory. */
export interface FakeAudit extends AuditLog {
  readonly entries: readonly AuditEntry[];
}

/** Makes an empty {@link FakeAudit}. */
export function createFakeAudit(): FakeAudit {
  const entries: AuditEntry[] = [];
  return {
    entries,
    append: (entry) => void entries.push(entry),
    read: () => Promise.resolve(entries.map((entry, index) => ({ entry, seq: index + 1 }))),
  };
}
