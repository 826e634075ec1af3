import { createHash } from "node:crypto";
import type { Clock } from "../../lib/clock.ts";
import type { TaskGroup } from "../../lib/task_group.ts";
import { type Action, targetOf } from "./action_kinds.ts";
import type { ActionOutcome, ActionRequest } from "./actions.ts";
import { type Operation, operationView } from "./operation.ts";
import type { Operations } from "./operations.ts";

/** Writes new operations down. */
export interface OperationBegin {
  /** Written, or surely not: one whose writing was cut short is not carried out later. */
  begin: Operations["begin"];
  /**
   * A row about an action that does not fit, for whoever looks; the key may be used again, for another
   * try. Best effort: empty when it cannot be written.
   */
  keepRefused(
    operation: Operation,
    error: string,
    signal: AbortSignal,
  ): Promise<Pick<Extract<ActionOutcome, { readonly kind: "conflict" }>, "operation">>;
}

/** Makes an {@link OperationBegin}; what it must find out later runs in `tasks`. */
export function createOperationBegin({ operations, tasks, clock }: {
  readonly operations: Operations;
  readonly tasks: TaskGroup;
  readonly clock: Clock;
}): OperationBegin {
  return {
    async begin(operation, signal) {
      try {
        return await operations.begin(operation, signal);
      } catch (error) {
        tasks.spawn(`doubt ${operation.id}`, async (stop) => {
          const there = await operations.reload(operation.id, stop);
          if (there?.state !== "running") return;
          const why = "NATS did not answer in time: nothing was done";
          const failed = { state: "failed", endedAt: clock.now(), error: why } as const;
          await operations.change(operation.id, failed, stop);
        });
        throw error;
      }
    },
    async keepRefused(operation, error, signal) {
      const { startedAt: endedAt } = operation;
      const kept = { ...operation, id: newId(), state: "failed", endedAt, error } as const;
      try {
        await operations.begin(kept, signal);
        return { operation: operationView(kept) };
      } catch {
        return {};
      }
    },
  };
}

/** The operation of a new action. Its id is a hash of actor and key, so that it can be made only once. */
export function newOperation(
  action: Action,
  { actor, note, requestId, key }: ActionRequest,
  now: number,
): Operation {
  const hash = (...parts: readonly string[]) =>
    createHash("sha256").update(JSON.stringify(parts)).digest("hex");
  return {
    id: key === null ? newId() : `op-${hash("gdr/operation/v1", actor.name, key).slice(0, 24)}`,
    action,
    target: targetOf(action),
    state: "running",
    progress: { done: 0, total: 1 },
    startedAt: now,
    endedAt: null,
    by: actor.name,
    role: actor.role,
    note,
    requestId,
    fingerprint: hash(JSON.stringify(action), note),
    before: null,
    after: null,
    error: null,
  };
}

/** What an action gets whose key another operation was begun with: that one, if it is the same action. */
export function replay(known: Operation, asked: Operation): ActionOutcome {
  return known.fingerprint === asked.fingerprint
    ? { kind: "done", operation: operationView(known) }
    : {
      kind: "differs",
      detail: `Use another Idempotency-Key: operation "${known.id}" was begun with this one`,
    };
}

function newId(): string {
  return `op-${crypto.randomUUID().replaceAll("-", "").slice(0, 24)}`;
}
