import { oneLine } from "../../lib/one_line.ts";
import type { Action, ReleaseTier } from "./action_kinds.ts";
import { forgetExecutor } from "./actions_flags.ts";
import type { Engine } from "../engine.ts";
import { createFlagEffects, type FlagEffectsDeps, noted } from "./flag_effects.ts";
import type { AssignmentId, ExecutorName } from "../model/ids.ts";
import type { Operation } from "./operation.ts";
import { createOperationSteps, type OperationStepsDeps } from "./operation_steps.ts";

/** What {@link createOperationEffects} needs. */
export interface OperationEffectsDeps extends OperationStepsDeps, FlagEffectsDeps {
  readonly engine: Pick<
    Engine,
    "flags" | "setFlags" | "retry" | "release" | "strangers" | "removeStranger" | "recovered"
  >;
  /** Lets another replica lead; null where none could. */
  readonly stepDown: ((detail: string) => void) | null;
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
/** Between looks whether this process leads again, when it was not sure. */
const UNSURE_MS = 1_000;
/** Between the answer to a step-down and the end of this leader. */
const FAREWELL_MS = 250;

/** Makes {@link OperationEffects}. Every effect is tried again until it holds. */
export function createOperationEffects(deps: OperationEffectsDeps): OperationEffects {
  const { engine, operations, follow, clock } = deps;
  const steps = createOperationSteps(deps);
  const { hold, end, fail, mayAct } = steps;
  const flags = createFlagEffects(deps, steps);

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

  /** Deleted; with `forget` its slot is given back before that, and its deletion is tried once. */
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
        flags.write(operation, {
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
        return await flags.set(operation, action, taken, signal);
      case "undo":
        return await flags.undo(operation, action.operation, signal);
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
      while (true) {
        try {
          return await perform(operation, taken, signal);
        } catch (error) {
          signal.throwIfAborted();
          if (mayAct()) {
            return await fail(
              operation,
              error instanceof Error ? error.message : String(error),
              signal,
            );
          }
        }
        // Not sure who leads: gone on with as soon as it is, or by the next leader. Left alone here it
        // would never end.
        await clock.sleep(UNSURE_MS, signal);
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
