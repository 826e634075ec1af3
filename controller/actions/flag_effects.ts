import type { Clock } from "../../lib/clock.ts";
import { changeFlags, type Configured, type FlagAction, undoDrain } from "./actions_flags.ts";
import type { Engine } from "../engine.ts";
import type { BackendName } from "../model/ids.ts";
import type { Operation } from "./operation.ts";
import type { Follow } from "./operation_follow.ts";
import type { OperationSteps } from "./operation_steps.ts";
import type { Operations } from "./operations.ts";
import type { FlagStore } from "../records.ts";

/** What {@link createFlagEffects} needs. */
export interface FlagEffectsDeps {
  readonly engine: Pick<Engine, "flags" | "setFlags">;
  readonly flags: FlagStore;
  readonly operations: Operations;
  readonly follow: Follow;
  readonly clock: Clock;
  configured(backend: BackendName): Configured;
  /** Flags have changed: Gitea is told at once. */
  refreshLabels(): void;
  /** Throws when this process may not act any more. */
  guard(): void;
  /** The effect holds, or never will: for the audit. */
  tell(operation: Operation): void;
}

/** Effects on what operators have set for a backend. All reject with the signal's reason only. */
export interface FlagEffects {
  /**
   * Writes the flags of a backend, unless this operation has done so already; resolves to why it may not
   * when they do not fit any more.
   */
  write(
    operation: Operation,
    how: {
      readonly backend: BackendName;
      readonly change: (flags: ReturnType<Engine["flags"]>) => ReturnType<typeof changeFlags>;
    },
    signal: AbortSignal,
  ): Promise<string | null>;
  /** `taken` is called when the flags of a drain hold; it ends when nothing runs any more. */
  set(
    operation: Operation,
    action: FlagAction,
    taken: () => void,
    signal: AbortSignal,
  ): Promise<void>;
  /** Puts back what the drain `of` has set. */
  undo(operation: Operation, of: string, signal: AbortSignal): Promise<void>;
}

/** Makes {@link FlagEffects}. */
export function createFlagEffects(
  deps: FlagEffectsDeps,
  { hold, end, fail }: OperationSteps,
): FlagEffects {
  const { engine, operations, follow, clock } = deps;

  const write: FlagEffects["write"] = async (operation, { backend, change }, signal) => {
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

  const set: FlagEffects["set"] = async (operation, action, taken, signal) => {
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

  const undo: FlagEffects["undo"] = async (operation, of, signal) => {
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

  return { write, set, undo };
}

/** Who has set something, when, and why. */
export function noted({ by, startedAt, note }: Operation) {
  return { by, at: startedAt, note };
}
