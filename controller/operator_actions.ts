import { createHash } from "node:crypto";
import { abortable } from "../lib/abortable.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { createTaskGroup } from "../lib/task_group.ts";
import { type Action, targetOf } from "./action_kinds.ts";
import { createActionAudit } from "./action_audit.ts";
import { type Check, createActionChecks } from "./action_checks.ts";
import type { ActionOutcome, ActionRequest, Actions } from "./actions.ts";
import type { Configured } from "./actions_flags.ts";
import { settleOverrides } from "./actions_start.ts";
import type { AuditLog } from "./audit.ts";
import type { Call } from "./backend.ts";
import type { Engine } from "./engine.ts";
import type { BackendName } from "./model/ids.ts";
import { type Operation, operationView } from "./operation.ts";
import { createOperationEffects } from "./operation_effects.ts";
import { createFollow } from "./operation_follow.ts";
import type { Operations } from "./operations.ts";
import { QueueError } from "./queue.ts";
import type { FlagStore } from "./records.ts";
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
  const turns = new Map<string, Promise<void>>();
  let starting: Promise<void> = Promise.resolve();
  /** Outcomes of operations that were begun: those have told of it themselves. */
  const told = new WeakSet<ActionOutcome>();

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

  /** One action after the other on each target: what was checked still holds when it is done. */
  const inTurn = async <T>(target: string, work: () => Promise<T>, signal: AbortSignal) => {
    const before = turns.get(target) ?? Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    const mine = before.then(() => promise);
    turns.set(target, mine);
    try {
      await abortable(before, signal);
      return await work();
    } finally {
      resolve();
      if (turns.get(target) === mine) turns.delete(target);
    }
  };

  const take = async (
    operation: Operation,
    request: ActionRequest,
    signal: AbortSignal,
  ): Promise<ActionOutcome> => {
    const known = operations.get(operation.id);
    if (known !== undefined) return replay(known, operation);
    const checked: Check = check(operation, request.ifMatch);
    if (checked.kind === "conflict" || checked.kind === "stale") {
      return { ...checked, ...await keepRefused(operation, checked.detail, signal) };
    }
    if (checked.kind !== "fits") return checked;
    const running = operations.list().filter(({ endedAt }) => endedAt === null).length;
    if (running >= MOST_RUNNING) {
      return { kind: "unavailable", detail: `Wait: ${running} operations are under way` };
    }
    const { target, before, after, total } = checked;
    const first = { ...operation, target, before, after, progress: { done: 0, total } };
    const begun = await begin(first, signal);
    if (begun.kind === "known") return replay(begun.operation, operation);
    // Begun is begun: whoever asked may have gone.
    await abortable(carryOut(first), signal).catch(() => {});
    const now = operations.get(first.id) ?? first;
    if (now.state !== "failed") return { kind: "done", operation: operationView(now) };
    const detail = now.error ?? "It failed";
    const view = operationView(now);
    const failed = { kind: "conflict", detail, current: view, operation: view } as const;
    told.add(failed);
    return failed;
  };

  /** A row for the page; the key may be used again, for another try. Best effort. */
  const keepRefused = async (operation: Operation, error: string, signal: AbortSignal) => {
    const id = newId();
    const kept = {
      ...operation,
      id,
      state: "failed",
      endedAt: operation.startedAt,
      error,
    } as const;
    try {
      await operations.begin(kept, signal);
      return { operation: operationView(kept) };
    } catch {
      return {};
    }
  };

  /** Written, or surely not: one whose writing was cut short must not be carried out later. */
  const begin = async (operation: Operation, signal: AbortSignal) => {
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
  };

  const replay = (known: Operation, asked: Operation): ActionOutcome =>
    known.fingerprint === asked.fingerprint ? { kind: "done", operation: operationView(known) } : {
      kind: "differs",
      detail: `Use another Idempotency-Key: operation "${known.id}" was begun with this one`,
    };

  const attempt = async (action: Action, request: ActionRequest, call: Call) => {
    using patience = clock.timeout(PATIENCE_MS);
    const signal = AbortSignal.any([call.signal, patience.signal, tasks.signal]);
    const operation = firstOf(action, request, clock.now());
    try {
      deps.guard();
      // What an earlier leader has begun comes first.
      await abortable(starting, signal);
      const target = turnOf(action, operations);
      return await inTurn(target, () => take(operation, request, signal), signal);
    } catch (error) {
      call.signal.throwIfAborted();
      if (!patience.signal.aborted && !(error instanceof QueueError)) {
        // Nobody may act here any more, says the guard; anything else is a fault.
        deps.guard();
        throw error;
      }
      return { kind: "unavailable", detail: UNANSWERED } as const;
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
      if (writesFlags(operation.action)) await abortable(taken, signal);
    }
  };

  return {
    async act(action, request, call) {
      const outcome = await attempt(action, request, call).catch((error): ActionOutcome => {
        call.signal.throwIfAborted();
        if (!mayAct()) {
          return { kind: "unavailable", detail: "Ask the leader: this one leads no more" };
        }
        throw error;
      });
      if (outcome.kind !== "done" && !told.has(outcome)) {
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

/** The operation of a new action. Its id is a hash of actor and key, so that it can be made only once. */
function firstOf(action: Action, { actor, note, requestId, key }: ActionRequest, now: number) {
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
  } satisfies Operation;
}

function newId(): string {
  return `op-${crypto.randomUUID().replaceAll("-", "").slice(0, 24)}`;
}

/** An undo is about the backend of its drain. */
function turnOf(action: Action, operations: Operations): string {
  const of = action.kind === "undo" ? operations.get(action.operation) : undefined;
  return of?.target ?? targetOf(action);
}

function writesFlags({ kind }: Action): boolean {
  return kind === "cordon" || kind === "drain" || kind === "resume" || kind === "capacity" ||
    kind === "label" || kind === "undo";
}
