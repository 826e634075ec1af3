import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { oneLine } from "../lib/one_line.ts";
import { retryForever } from "../lib/retry.ts";
import type { Action, ReleaseTier } from "./action_kinds.ts";
import {
  changeFlags,
  type Configured,
  type FlagAction,
  forgetExecutor,
  undoDrain,
} from "./actions_flags.ts";
import type { Engine } from "./engine.ts";
import type { AssignmentId, BackendName, ExecutorName } from "./model/ids.ts";
import type { Operation } from "./operation.ts";
import type { Follow } from "./operation_follow.ts";
import type { OperationChange, Operations } from "./operations.ts";
import { QueueError } from "./queue.ts";
import type { FlagStore } from "./records.ts";

/** What {@link createOperationEffects} needs. */
export interface OperationEffectsDeps {
  readonly engine: Pick<
    Engine,
    "flags" | "setFlags" | "retry" | "release" | "strangers" | "removeStranger" | "recovered"
  >;
  readonly flags: FlagStore;
  readonly operations: Operations;
  readonly follow: Follow;
  readonly clock: Clock;
  readonly random: () => number;
  readonly logger: Logger;
  configured(backend: BackendName): Configured;
  /** Flags have changed: Gitea is told at once. */
  refreshLabels(): void;
  /** Lets another replica lead; null where none could. */
  readonly stepDown: ((detail: string) => void) | null;
  /** Throws when this process may not act any more. */
  guard(): void;
  /** The effect holds, or never will: for the audit. */
  tell(operation: Operation): void;
}

/** Carries operations out, from wherever they stand: after a restart, too. */
export interface OperationEffects {
  /**
   * Resolves when the operation has ended; `taken` is called when its effect holds, which may be long
   * before. Rejects with the signal's reason only.
   */
  run(operation: Operation, taken: () => void, signal: AbortSignal): Promise<void>;
}

const LOOK_MS = 250;
/** Between tries to delete an executor that nobody can account for. */
const AGAIN_MS = 5_000;
/** Between the answer to a step-down and the end of this leader. */
const FAREWELL_MS = 250;

/** Makes {@link OperationEffects}. Every effect is tried again until it holds. */
export function createOperationEffects(deps: OperationEffectsDeps): OperationEffects {
  const { engine, operations, follow, clock } = deps;

  /** Until it holds; what can never hold rejects. */
  const hold = <T>(
    operation: Operation,
    signal: AbortSignal,
    effect: (attempt: number) => Promise<T>,
  ) =>
    retryForever((attempt) => {
      deps.guard();
      return effect(attempt);
    }, {
      clock,
      random: deps.random,
      signal,
      backoff: { firstMs: 250, maxMs: 5_000 },
      final: (error) => !(error instanceof QueueError && mayHoldLater(error)),
      onError: (error) =>
        deps.logger.warn("operation is tried again", { operation: operation.id, error }),
    });

  const end = async (operation: Operation, change: OperationChange, signal: AbortSignal) =>
    await hold(operation, signal, () =>
      operations.change(operation.id, {
        state: "done",
        progress: { done: operation.progress.total, total: operation.progress.total },
        error: null,
        ...change,
        endedAt: clock.now(),
      }, signal));

  const fail = async (operation: Operation, error: string, signal: AbortSignal) => {
    const { progress } = operations.get(operation.id) ?? operation;
    deps.tell(await end(operation, { state: "failed", error, progress }, signal));
  };

  const noted = ({ by, startedAt, note }: Operation) => ({ by, at: startedAt, note });

  /** Writes the flags of a backend; resolves to why it may not when they do not fit any more. */
  const write = async (
    operation: Operation,
    { backend, change }: {
      readonly backend: BackendName;
      readonly change: (flags: ReturnType<Engine["flags"]>) => ReturnType<typeof changeFlags>;
    },
    signal: AbortSignal,
  ): Promise<string | null> => {
    const stored = await deps.flags.read(backend, { signal });
    const adopt = (flags: typeof stored.flags) => {
      engine.setFlags(backend, flags);
      deps.refreshLabels();
    };
    if (stored.operation === operation.id) {
      adopt(stored.flags);
      return null;
    }
    const last = stored.operation === null ? undefined : operations.get(stored.operation);
    if (last !== undefined && last.startedAt > operation.startedAt) {
      return `A later operation, "${last.id}", has changed "${backend}"`;
    }
    const made = change(stored.flags);
    if (made.kind === "refused") return made.detail;
    deps.guard();
    const next = { flags: made.flags, revision: stored.revision, operation: operation.id };
    const written = await deps.flags.write(backend, next, { signal });
    adopt(written.flags);
    return null;
  };

  const setFlags = async (
    operation: Operation,
    action: FlagAction,
    taken: () => void,
    signal: AbortSignal,
  ) => {
    const how = {
      note: noted(operation),
      operation: operation.id,
      configured: deps.configured(action.backend),
    };
    const refused = await hold(operation, signal, () =>
      write(operation, {
        backend: action.backend,
        change: (flags) => changeFlags(action, flags, how),
      }, signal));
    if (refused !== null) return await fail(operation, refused, signal);
    if (action.kind === "drain") {
      deps.tell(operation);
      taken();
      const result = await follow.drain(operation, action, signal);
      if (result.kind === "ended") {
        const { progress } = operations.get(operation.id) ?? operation;
        await end(operation, { progress }, signal);
      }
      return;
    }
    if (action.kind === "resume") {
      const drains = operations.list().filter(({ state, target, action: { kind } }) =>
        kind === "drain" && state === "running" && target === operation.target
      );
      for (const { id } of drains) await lift(id, ["running"], signal);
    }
    deps.tell(await end(operation, {}, signal));
  };

  /** The drain of that operation stands no more. */
  const lift = async (
    id: string,
    states: readonly Operation["state"][],
    signal: AbortSignal,
  ) => {
    const drain = operations.get(id);
    if (drain === undefined || !states.includes(drain.state)) return;
    await hold(
      drain,
      signal,
      () => operations.change(id, { state: "undone", endedAt: clock.now() }, signal),
    );
  };

  const undo = async (operation: Operation, of: string, signal: AbortSignal) => {
    const drain = operations.get(of);
    if (drain?.action.kind !== "drain") {
      return await fail(operation, `Nothing to undo: there is no drain "${of}"`, signal);
    }
    const { backend } = drain.action;
    const refused = await hold(
      operation,
      signal,
      () => write(operation, { backend, change: (flags) => undoDrain(flags, of) }, signal),
    );
    if (refused !== null) return await fail(operation, refused, signal);
    await lift(of, ["running", "done"], signal);
    deps.tell(await end(operation, {}, signal));
  };

  const retry = async (operation: Operation, id: AssignmentId, signal: AbortSignal) => {
    const entry = await follow.known(id, signal);
    const outcome = await hold(operation, signal, async (attempt) => {
      const { kind } = await engine.retry(id, signal);
      // An earlier try may have got as far as this, before a restart, too.
      return kind === "retried" || attempt > 1 || entry?.restored === true ? "retried" : kind;
    });
    if (outcome === "retried") return void deps.tell(await end(operation, {}, signal));
    const state = entry?.state.kind ?? "gone";
    await fail(operation, `Retry only what is parked: "${id}" is ${state}`, signal);
  };

  const release = async (
    operation: Operation,
    { id, tier }: { readonly id: AssignmentId; readonly tier: ReleaseTier },
    taken: () => void,
    signal: AbortSignal,
  ) => {
    await follow.known(id, signal);
    const why = whyOf(operation, tier);
    await hold(operation, signal, async () => {
      if (tier === "forget") await engine.release.forget(id, why, signal);
      else if (tier === "forced") engine.release.force(id, why);
      else engine.release.cancel(id, why);
    });
    deps.tell(operation);
    taken();
    const result = await follow.end(operation, { id, tier, why }, signal);
    await end(operation, result.kind === "ended" ? { after: result.after } : {}, signal);
  };

  /** Deleted; with `forget` its slot is given back before that, and the deletion is tried once more or less. */
  const releaseExecutor = async (
    operation: Operation,
    { backend, name, uid, tier }: Extract<Action, { readonly kind: "release-executor" }>,
    taken: () => void,
    signal: AbortSignal,
  ) => {
    const executor = { name: name as ExecutorName, uid };
    const find = (given: { readonly uid: string }) =>
      engine.strangers(backend).find((each) => each.executor.uid === given.uid);
    while (!engine.recovered(backend)) await clock.sleep(LOOK_MS, signal);
    if (tier === "forget") {
      const given = { ...noted(operation), name, uid };
      const refused = await hold(operation, signal, () =>
        write(operation, {
          backend,
          change: (flags) => forgetExecutor(flags, given, (each) => find(each) === undefined),
        }, signal));
      if (refused !== null) return await fail(operation, refused, signal);
    }
    deps.tell(operation);
    taken();
    while (find(executor) !== undefined) {
      const left = await engine.removeStranger(backend, executor, signal).catch((error) => {
        signal.throwIfAborted();
        deps.guard();
        return error instanceof Error ? error : new Error(String(error));
      });
      if (left === "gone") break;
      // Its slot is free: the list of executors shows it as long as it is there.
      if (tier === "forget") break;
      if (left !== "leaving") operations.show(operation.id, { error: left.message });
      await clock.sleep(AGAIN_MS, signal);
    }
    await end(operation, {}, signal);
  };

  const stepDown = async (operation: Operation, taken: () => void, signal: AbortSignal) => {
    deps.tell(await end(operation, {}, signal));
    taken();
    await clock.sleep(FAREWELL_MS, signal);
    deps.stepDown?.(whyOf(operation, null));
  };

  const perform = async (operation: Operation, taken: () => void, signal: AbortSignal) => {
    const { action } = operation;
    switch (action.kind) {
      case "cordon":
      case "drain":
      case "resume":
      case "capacity":
      case "label":
        return await setFlags(operation, action, taken, signal);
      case "undo":
        return await undo(operation, action.operation, signal);
      case "retry":
        return await retry(operation, action.id, signal);
      case "cancel":
        return await release(operation, { id: action.id, tier: "graceful" }, taken, signal);
      case "release":
        return await release(operation, action, taken, signal);
      case "release-executor":
        return await releaseExecutor(operation, action, taken, signal);
      case "step-down":
        return await stepDown(operation, taken, signal);
      default:
        return action satisfies never;
    }
  };

  return {
    async run(operation, taken, signal) {
      try {
        await perform(operation, taken, signal);
      } catch (error) {
        signal.throwIfAborted();
        // Also when this process may not act any more: then the next leader goes on with it.
        deps.guard();
        await fail(operation, error instanceof Error ? error.message : String(error), signal);
      }
    },
  };
}

/** For the job's author: who wanted it, and why. */
function whyOf({ by, note, action }: Operation, tier: ReleaseTier | null): string {
  const what = action.kind === "step-down"
    ? "stepped down"
    : tier === "graceful"
    ? "cancelled"
    : "given up";
  return `${what} by ${oneLine(by, 100)}${note === "" ? "" : `: ${oneLine(note)}`}`;
}

/** A lost write is tried again over what stands there then. */
function mayHoldLater({ code, retryable }: QueueError): boolean {
  return retryable || code === "conflict";
}
