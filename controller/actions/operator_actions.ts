import { abortable } from "../../lib/abortable.ts";
import type { Clock } from "../../lib/clock.ts";
import { createKeyedMutex } from "../../lib/keyed_mutex.ts";
import type { Logger } from "../../lib/logger.ts";
import { createTaskGroup } from "../../lib/task_group.ts";
import { type Action, targetOf } from "./action_kinds.ts";
import { createActionAudit } from "./action_audit.ts";
import { type Check, createActionChecks } from "./action_checks.ts";
import type { ActionOutcome, ActionRequest, Actions } from "./actions.ts";
import { type Configured, isFlagAction } from "./actions_flags.ts";
import { settleOverrides } from "./actions_start.ts";
import type { AuditLog } from "./audit.ts";
import type { Call } from "../backend.ts";
import type { Engine } from "../engine.ts";
import type { BackendName } from "../model/ids.ts";
import { type Operation, operationView } from "./operation.ts";
import { createOperationBegin, newOperation, replay } from "./operation_begin.ts";
import { createOperationEffects } from "./operation_effects.ts";
import { createFollow } from "./operation_follow.ts";
import type { Operations } from "./operations.ts";
import { QueueError } from "../queue.ts";
import type { FlagStore } from "../records.ts";
import { previewRelease } from "./release_preview.ts";

/** What {@link createOperatorActions} needs. */
export interface OperatorActionsDeps {
  readonly engine: Pick<
    Engine,
    | "ledger"
    | "pools"
    | "flags"
    | "setFlags"
    | "retry"
    | "release"
    | "recovered"
    | "ready"
    | "strangers"
    | "removeStranger"
  >;
  readonly flags: FlagStore;
  readonly operations: Operations;
  readonly audit: Pick<AuditLog, "append">;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly random: () => number;
  /** Backends that run here. */
  readonly enabled: readonly BackendName[];
  configured(backend: BackendName): Configured;
  /** Flags have changed: Gitea is told at once. */
  refreshLabels(): void;
  /** Whether Gitea may still hand out jobs of this backend to us. */
  offered(backend: BackendName): boolean;
  /** Lets another replica lead; null where none could. */
  readonly stepDown: ((detail: string) => void) | null;
  /** Throws when this process may not act any more. */
  guard(): void;
}

/** The {@link Actions} of the leader; dispose it to stop following: the next leader goes on. */
export interface OperatorActions extends Actions, AsyncDisposable {
  /**
   * Drops overrides whose configuration has changed, reads the operations and goes on with those that
   * are still running. Resolves when flags and labels are as they must be: call it before anything is
   * declared. Rejects with the signal's reason only.
   */
  start(signal: AbortSignal): Promise<void>;
}

/** How long a caller waits for an effect; what takes longer is a running operation. */
const PATIENCE_MS = 10_000;
/** Operations under way at a time. */
const MOST_RUNNING = 500;

/** Makes {@link OperatorActions}. See docs/adr/0028. */
export function createOperatorActions(deps: OperatorActionsDeps): OperatorActions {
  const { engine, operations, clock } = deps;
  const logger = deps.logger.child({ component: "actions" });
  const tasks = createTaskGroup(logger);
  /** One action after the other on each target: what was checked still holds when it is done. */
  const turns = createKeyedMutex();
  const { begin, keepRefused } = createOperationBegin({ operations, tasks, clock });
  let starting: Promise<void> = Promise.resolve();

  const audit = createActionAudit({ audit: deps.audit, clock, logger });
  const follow = createFollow({
    engine,
    operations,
    clock,
    offered: deps.offered,
    async onLate(operation, detail) {
      await operations.change(operation.id, { error: detail }, tasks.signal).catch(() => {});
      audit.told(operation, "failed", detail);
    },
  });
  const effects = createOperationEffects({
    ...deps,
    follow,
    logger,
    tell: (operation) => audit.told(operation, operation.state === "failed" ? "failed" : "done"),
  });
  const check = createActionChecks(deps);

  /** Resolves when the effect holds, or the operation has ended. */
  const carryOut = (operation: Operation): Promise<void> => {
    const taken = Promise.withResolvers<void>();
    tasks.spawn(`operation ${operation.id}`, async (signal) => {
      try {
        await effects.run(operation, taken.resolve, signal);
      } finally {
        taken.resolve();
      }
    });
    return taken.promise;
  };

  const take = async (
    operation: Operation,
    request: ActionRequest,
    signal: AbortSignal,
  ): Promise<Taken> => {
    const known = operations.get(operation.id);
    if (known !== undefined) return untold(replay(known, operation));
    const checked: Check = check(operation, request.ifMatch);
    if (checked.kind === "conflict" || checked.kind === "stale") {
      return untold({ ...checked, ...await keepRefused(operation, checked.detail, signal) });
    }
    if (checked.kind !== "fits") return untold(checked);
    const running = operations.list().filter(({ endedAt }) => endedAt === null).length;
    if (running >= MOST_RUNNING) {
      return untold({ kind: "unavailable", detail: `Wait: ${running} operations are under way` });
    }
    const { target, before, after, total } = checked;
    const first = { ...operation, target, before, after, progress: { done: 0, total } };
    const begun = await begin(first, signal);
    if (begun.kind === "known") return untold(replay(begun.operation, operation));
    // Begun is begun: whoever asked may have gone.
    await abortable(carryOut(first), signal).catch(() => {});
    const now = operations.get(first.id) ?? first;
    const view = operationView(now);
    if (now.state !== "failed") return { outcome: { kind: "done", operation: view }, told: true };
    const detail = now.error ?? "It failed";
    return { outcome: { kind: "conflict", detail, current: view, operation: view }, told: true };
  };

  const attempt = async (action: Action, request: ActionRequest, call: Call): Promise<Taken> => {
    using patience = clock.timeout(PATIENCE_MS);
    const signal = AbortSignal.any([call.signal, patience.signal, tasks.signal]);
    const operation = newOperation(action, request, clock.now());
    try {
      deps.guard();
      // What an earlier leader has begun comes first.
      await abortable(starting, signal);
      const target = turnOf(action, operations);
      return await turns.run(target, signal, () => take(operation, request, signal));
    } catch (error) {
      call.signal.throwIfAborted();
      if (!mayAct()) {
        return untold({ kind: "unavailable", detail: "Ask the leader: this one leads no more" });
      }
      if (!patience.signal.aborted && !(error instanceof QueueError)) throw error;
      return untold({ kind: "unavailable", detail: UNANSWERED });
    }
  };

  const start = async (signal: AbortSignal) => {
    for (const backend of deps.enabled) {
      await settleOverrides({ ...deps, audit: audit.write }, backend, signal);
    }
    // Newest first: an undo that was cut short ends its drain.
    for (const { id } of await operations.load(signal)) {
      const operation = operations.get(id);
      if (operation?.state !== "running") continue;
      const taken = carryOut(operation);
      if (isAboutFlags(operation.action)) await abortable(taken, signal);
    }
  };

  return {
    async act(action, request, call) {
      const { outcome, told } = await attempt(action, request, call);
      if (outcome.kind !== "done" && !told) {
        audit.refused({ kind: action.kind, target: targetOf(action) }, request, outcome.detail);
      }
      return outcome;
    },
    preview(id, tier) {
      const entry = engine.ledger.get(id);
      return entry === undefined ? undefined : previewRelease(entry, tier);
    },
    tagOf: check.tagOf,
    refused: audit.refused,
    start(signal) {
      starting = start(signal);
      return starting;
    },
    [Symbol.asyncDispose]: () => tasks[Symbol.asyncDispose](),
  };

  function mayAct(): boolean {
    try {
      deps.guard();
      return true;
    } catch {
      return false;
    }
  }
}

const UNANSWERED = "Try again later: NATS does not answer, and nothing was done";

/** What became of an action; an operation that was begun has `told` the audit of it itself. */
interface Taken {
  readonly outcome: ActionOutcome;
  readonly told: boolean;
}

function untold(outcome: ActionOutcome): Taken {
  return { outcome, told: false };
}

/** An undo is about the backend of its drain. */
function turnOf(action: Action, operations: Operations): string {
  const of = action.kind === "undo" ? operations.get(action.operation) : undefined;
  return of?.target ?? targetOf(action);
}

function isAboutFlags(action: Action): boolean {
  return action.kind === "undo" || isFlagAction(action);
}
