import { readAction } from "../../controller/actions/action_kinds.ts";
import type {
  Operation,
  OperationStore,
  StoredOperation,
} from "../../controller/actions/operation.ts";
import type { Role } from "../../controller/model/role.ts";
import type { Clock } from "../../lib/clock.ts";
import { type Bucket, createBucket, type KeyValue } from "./bucket.ts";
import type { NatsConnection } from "./connection.ts";
import { type Json, numberAt, numberOf, objectAt, textAt, textOf } from "./json.ts";

const PREFIX = "operation.";

/** Operations in the bucket, one key each; it must exist: `ensureStreams`. */
export function createOperationStore(
  connection: NatsConnection,
  deps: { readonly clock: Clock },
): OperationStore {
  const bucket: Bucket = createBucket(connection, deps);
  const put = async ({ operation, revision }: StoredOperation, signal: AbortSignal) => ({
    operation,
    revision: await bucket.put(PREFIX + operation.id, operation, revision, { signal }),
  });
  return {
    create: (operation, { signal }) => put({ operation, revision: 0 }, signal),
    update: (stored, { signal }) => put(stored, signal),
    async get(id, call) {
      const stored = await bucket.get(PREFIX + id, call);
      return stored === undefined ? undefined : storedOf(stored);
    },
    async list(call) {
      const stored = await bucket.list(`${PREFIX}*`, call);
      return stored.map(storedOf).filter((each) => each !== undefined);
    },
    async remove({ operation, revision }, call) {
      await bucket.remove(PREFIX + operation.id, revision, call);
    },
    sweep: (call) => bucket.sweep(`${PREFIX}*`, call),
  };
}

function storedOf({ key, value, revision }: KeyValue): StoredOperation | undefined {
  const action = readAction(value.action);
  if (action === undefined) return undefined;
  const id = key.slice(PREFIX.length);
  const progress = objectAt(value, "progress");
  const operation: Operation = {
    id,
    action,
    target: textAt(value, "target"),
    state: stateOf(value),
    progress: { done: numberAt(progress, "done"), total: numberAt(progress, "total") },
    startedAt: numberAt(value, "startedAt"),
    endedAt: numberOf(value.endedAt),
    by: textAt(value, "by"),
    role: roleOf(value),
    note: textAt(value, "note"),
    requestId: textAt(value, "requestId"),
    fingerprint: textAt(value, "fingerprint"),
    before: value.before ?? null,
    after: value.after ?? null,
    error: textOf(value.error),
  };
  return { operation, revision };
}

function stateOf({ state }: Json): Operation["state"] {
  return state === "running" || state === "done" || state === "undone" ? state : "failed";
}

function roleOf({ role }: Json): Role {
  return role === "admin" || role === "operator" ? role : "viewer";
}
