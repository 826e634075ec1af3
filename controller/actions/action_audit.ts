import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/logger.ts";
import type { ActionKind } from "./action_kinds.ts";
import type { ActionRequest } from "./actions.ts";
import type { AuditEntry, AuditLog } from "./audit.ts";
import type { Operation } from "./operation.ts";

/** Tells audit and log what became of actions. */
export interface ActionAudit {
  write(entry: AuditEntry): void;
  /** It was not taken. */
  refused(
    action: { readonly kind: ActionKind; readonly target: string },
    request: ActionRequest,
    error: string,
  ): void;
  /** What an operation has done, or why it could not; each is shown once, however often it is told. */
  told(operation: Operation, result: "done" | "failed", error?: string | null): void;
}

/** Makes {@link ActionAudit}. */
export function createActionAudit(deps: {
  readonly audit: Pick<AuditLog, "append">;
  readonly clock: Pick<Clock, "now">;
  readonly logger: Logger;
}): ActionAudit {
  const { clock } = deps;
  const write = (entry: AuditEntry) => {
    deps.audit.append(entry);
    const { id: _, at: _at, before: _before, after: _after, ...fields } = entry;
    deps.logger.info("action", fields);
  };
  return {
    write,
    refused({ kind, target }, { actor, note, requestId }, error) {
      write({
        id: crypto.randomUUID(),
        at: clock.now(),
        actor: actor.name,
        role: actor.role,
        action: kind,
        target,
        before: null,
        after: null,
        note,
        requestId,
        result: "refused",
        error,
      });
    },
    told(operation, result, error = operation.error) {
      const { id, by, role, action, target, before, after, note, requestId } = operation;
      write({
        id: result === "done" ? id : `${id}-${result}`,
        at: clock.now(),
        actor: by,
        role,
        action: action.kind,
        target,
        before,
        after: result === "done" ? after : null,
        note,
        requestId,
        result,
        error,
      });
    },
  };
}
