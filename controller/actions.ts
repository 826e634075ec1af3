import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import type { Call } from "./backend.ts";
import type { Engine } from "./engine.ts";
import type { AssignmentId } from "./model/ids.ts";
import { QueueError } from "./queue.ts";
import { assignmentView, iso } from "./view_of.ts";
import type { AssignmentView, OperationView } from "./views.ts";

/** Who asks for an action, and why. */
export interface ActionRequest {
  readonly by: string;
  readonly note: string;
  /** Of the HTTP request: in the log and in the answer. */
  readonly requestId: string;
}

/** What became of an action. `detail` is English: what is the matter, and the way out. */
export type ActionOutcome =
  | { readonly kind: "done"; readonly operation: OperationView }
  | { readonly kind: "absent"; readonly detail: string }
  /** It does not fit to how things stand: `current`. */
  | { readonly kind: "conflict"; readonly detail: string; readonly current: AssignmentView | null }
  /** Not now: a server is away, or another process leads. */
  | { readonly kind: "unavailable"; readonly detail: string };

/** What operators may do. Every action is logged with its result; none rejects but with its signal. */
export interface Actions {
  /** Tries a parked assignment now. */
  retry(id: AssignmentId, request: ActionRequest, call: Call): Promise<ActionOutcome>;
}

const PATIENCE_MS = 10_000;

/** Makes the {@link Actions} of the leader. */
export function createActions(deps: {
  readonly engine: Pick<Engine, "retry" | "ledger">;
  readonly clock: Clock;
  readonly logger: Logger;
}): Actions {
  const { engine, clock } = deps;
  const logger = deps.logger.child({ component: "actions" });

  const attempt = async (
    id: AssignmentId,
    startedAt: number,
    request: ActionRequest,
    call: Call,
  ) => {
    using patience = clock.timeout(PATIENCE_MS);
    try {
      const outcome = await engine.retry(id, AbortSignal.any([call.signal, patience.signal]));
      return outcomeOf(id, startedAt, request, outcome.kind);
    } catch (error) {
      call.signal.throwIfAborted();
      if (!(error instanceof QueueError) && !patience.signal.aborted) throw error;
      return {
        kind: "unavailable",
        detail: "Retry later: NATS does not answer; the job is tried by itself, too",
      } as const;
    }
  };

  const outcomeOf = (
    id: AssignmentId,
    startedAt: number,
    { by, note }: ActionRequest,
    kind: "retried" | "unknown" | "not_parked",
  ): ActionOutcome => {
    switch (kind) {
      case "retried":
        return {
          kind: "done",
          operation: {
            id: crypto.randomUUID(),
            action: "retry",
            target: id,
            state: "done",
            progress: { done: 1, total: 1 },
            startedAt: iso(startedAt),
            endedAt: iso(clock.now()),
            by,
            note,
            before: null,
            after: null,
            error: null,
          },
        };
      case "unknown":
        return {
          kind: "absent",
          detail: `Look for another assignment: "${id}" is not known (any more)`,
        };
      case "not_parked": {
        const entry = engine.ledger.get(id);
        return {
          kind: "conflict",
          detail: `Retry only what is parked: "${id}" is ${entry?.state.kind ?? "gone"}`,
          current: entry === undefined ? null : assignmentView(entry, null),
        };
      }
      default:
        return kind satisfies never;
    }
  };

  return {
    async retry(id, request, call) {
      const outcome = await attempt(id, clock.now(), request, call);
      logger.info("action", {
        action: "retry",
        assignment: id,
        by: request.by,
        note: request.note,
        requestId: request.requestId,
        result: outcome.kind,
      });
      return outcome;
    },
  };
}
