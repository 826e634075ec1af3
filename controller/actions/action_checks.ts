import type { Action } from "./action_kinds.ts";
import { changeFlags, type Configured, type FlagAction, undoDrain } from "./actions_flags.ts";
import { assignmentTag, backendTag, executorTag, namesTag } from "./action_tags.ts";
import type { Refusal } from "./actions.ts";
import { drainLeft } from "./drain.ts";
import { flagsView } from "./flags_view.ts";
import type { Engine } from "../engine.ts";
import type { Entry } from "../entry.ts";
import {
  type AssignmentId,
  type BackendName,
  isBackendName,
  parseAssignmentId,
} from "../model/ids.ts";
import { type Operation, operationView } from "./operation.ts";
import type { Operations } from "./operations.ts";
import { refusalOf } from "./release_preview.ts";
import { assignmentView, strangerView } from "../views/view_of.ts";

/** Whether an action fits to how things stand. */
export type Check =
  | {
    readonly kind: "fits";
    readonly target: string;
    readonly before: unknown;
    readonly after: unknown;
    /** What its progress counts to. */
    readonly total: number;
  }
  | Refusal;

/** An operation that is to be begun. */
export type Asked = Pick<Operation, "id" | "action" | "by" | "note" | "startedAt">;

/** Looks at an action before anything is written. */
export interface ActionChecks {
  (operation: Asked, ifMatch: string | null): Check;
  /** For `If-Match`; null when the target is not known here. */
  tagOf(target: string): string | null;
}

/** Makes {@link ActionChecks}. */
export function createActionChecks(deps: {
  readonly engine: Pick<Engine, "ledger" | "pools" | "flags" | "strangers">;
  readonly operations: Pick<Operations, "get" | "list">;
  readonly enabled: readonly BackendName[];
  readonly stepDown: ((detail: string) => void) | null;
  configured(backend: BackendName): Configured;
}): ActionChecks {
  const { engine, operations } = deps;
  const { ledger } = engine;

  const currentOf = (backend: BackendName) => {
    const flags = engine.flags(backend);
    return { name: backend, ...flagsView(flags), tag: backendTag(flags) };
  };

  /** Undefined when the tag is the right one. */
  const stale = (ifMatch: string | null, tag: string, current: () => unknown) =>
    namesTag(ifMatch, tag) ? undefined : {
      kind: "stale",
      detail: "Look again: it has changed since you looked",
      current: current(),
    } as const;

  const backendCheck = (
    backend: BackendName,
    ifMatch: string | null,
    change: () => ReturnType<typeof changeFlags>,
    total: number,
  ): Check => {
    if (!deps.enabled.includes(backend)) {
      const detail = `Enable the backend in COMPONENTS: "${backend}" does not run here`;
      return { kind: "absent", detail };
    }
    const current = () => currentOf(backend);
    const changed = stale(ifMatch, backendTag(engine.flags(backend)), current);
    if (changed !== undefined) return changed;
    const made = change();
    if (made.kind === "refused") {
      return { kind: "conflict", detail: made.detail, current: current() };
    }
    return { kind: "fits", target: backend, before: made.before, after: made.after, total };
  };

  const flagCheck = (
    { id: operation, by, note: text, startedAt: at }: Asked,
    action: FlagAction,
    ifMatch: string | null,
  ): Check => {
    const { backend } = action;
    if (action.kind === "label" && backend !== "vm") {
      return {
        kind: "conflict",
        detail: `Choose backend "vm": "${backend}" has one label only`,
        current: currentOf(backend),
      };
    }
    const note = { by, at, note: text };
    const how = { note, operation, configured: deps.configured(backend) };
    const unknown = engine.pools[backend].unknown();
    const total = action.kind === "drain"
      ? drainLeft(ledger, backend, { hold: action.hold, unknown })
      : 1;
    return backendCheck(
      backend,
      ifMatch,
      () => changeFlags(action, engine.flags(backend), how),
      total,
    );
  };

  const entryCheck = (
    id: AssignmentId,
    ifMatch: string | null,
    refusal: (entry: Entry) => string | null,
    after: unknown = null,
  ): Check => {
    const entry = ledger.get(id);
    if (entry === undefined) {
      return {
        kind: "absent",
        detail: `Look for another assignment: "${id}" is not known (any more)`,
      };
    }
    const current = () => ({ ...assignmentView(entry, null), tag: assignmentTag(entry) });
    const changed = stale(ifMatch, assignmentTag(entry), current);
    if (changed !== undefined) return changed;
    const detail = refusal(entry);
    if (detail !== null) return { kind: "conflict", detail, current: current() };
    const { state, result } = assignmentView(entry, null);
    return { kind: "fits", target: id, before: { state, result }, after, total: 1 };
  };

  const strangerCheck = (
    action: Extract<Action, { readonly kind: "release-executor" }>,
    ifMatch: string | null,
  ): Check => {
    const { backend, name, uid, tier } = action;
    const found = engine.strangers(backend).find(({ executor }) => executor.name === name);
    if (found === undefined || found.executor.uid !== uid) {
      const detail = `Look again: no executor "${name}" is there that belongs to no assignment`;
      return { kind: "absent", detail };
    }
    const tag = executorTag(found);
    const current = () => ({ ...strangerView(found, backend), tag });
    const changed = stale(ifMatch, tag, current);
    if (changed !== undefined) return changed;
    const refusal = found.ownership === "foreign"
      ? `Leave "${name}" alone: ${found.why}`
      : tier === "forget" && found.ownership === "forgotten"
      ? `Leave "${name}" as it is: it holds no slot already`
      : null;
    if (refusal !== null) return { kind: "conflict", detail: refusal, current: current() };
    const same = underWay(action, name);
    if (same !== undefined) {
      const detail = `Wait: operation "${same.id}" by "${same.by}" does that already`;
      return { kind: "conflict", detail, current: operationView(same) };
    }
    const before = { ownership: found.ownership, phase: found.executor.phase };
    return { kind: "fits", target: name, before, after: { tier }, total: 1 };
  };

  /** The same is under way already. */
  const underWay = (action: Action, target: string) =>
    operations.list().find((each) =>
      each.endedAt === null && each.target === target &&
      JSON.stringify(each.action) === JSON.stringify(action)
    );

  const check = (asked: Asked, ifMatch: string | null): Check => {
    const { action } = asked;
    switch (action.kind) {
      case "cordon":
      case "drain":
      case "resume":
      case "capacity":
      case "label":
        return flagCheck(asked, action, ifMatch);
      case "undo": {
        const drain = operations.get(action.operation);
        if (drain?.action.kind !== "drain") {
          const detail = `Look for another operation: there is no drain "${action.operation}"`;
          return { kind: "absent", detail };
        }
        const { backend } = drain.action;
        const change = () => undoDrain(engine.flags(backend), drain.id);
        return backendCheck(backend, ifMatch, change, 1);
      }
      case "retry":
        return entryCheck(
          action.id,
          ifMatch,
          ({ state }) =>
            state.kind === "parked"
              ? null
              : `Retry only what is parked: "${action.id}" is ${state.kind}`,
        );
      case "cancel":
      case "release": {
        const same = underWay(action, action.id);
        if (same !== undefined) {
          const detail = `Wait: operation "${same.id}" by "${same.by}" does that already`;
          return { kind: "conflict", detail, current: operationView(same) };
        }
        const tier = action.kind === "release" ? action.tier : "graceful";
        // What comes of it takes its time; that somebody was forgotten must be seen at once.
        const after = action.kind === "release" ? { tier } : null;
        return entryCheck(action.id, ifMatch, (entry) => refusalOf(entry, tier), after);
      }
      case "release-executor":
        return strangerCheck(action, ifMatch);
      case "step-down":
        return deps.stepDown === null
          ? {
            kind: "conflict",
            detail: "Stop the process instead: without an elector nobody takes over",
            current: null,
          }
          : { kind: "fits", target: "leader", before: null, after: null, total: 1 };
      default:
        return action satisfies never;
    }
  };

  return Object.assign(check, {
    tagOf(target: string) {
      if (isBackendName(target)) {
        return deps.enabled.includes(target) ? backendTag(engine.flags(target)) : null;
      }
      for (const backend of deps.enabled) {
        const found = engine.strangers(backend).find(({ executor }) => executor.name === target);
        if (found !== undefined) return executorTag(found);
      }
      const id = parseAssignmentId(target);
      const entry = id === undefined ? undefined : ledger.get(id);
      return entry === undefined ? null : assignmentTag(entry);
    },
  });
}
