import type { Action, Deadline } from "./action_kinds.ts";
import { flagsView } from "./flags_view.ts";
import type { ControlFlags, FlagNote, ForgottenExecutor } from "../records.ts";
import { iso } from "../views/view_of.ts";

/** The actions that write flags. */
export type FlagAction = Extract<
  Action,
  { readonly kind: "cordon" | "drain" | "resume" | "capacity" | "label" }
>;

/** True for one of {@link FlagAction}. */
export function isFlagAction(action: Action): action is FlagAction {
  const { kind } = action;
  return kind === "cordon" || kind === "drain" || kind === "resume" || kind === "capacity" ||
    kind === "label";
}

/** What an action makes of a backend's flags. */
export type FlagChange =
  | {
    readonly kind: "changed";
    readonly flags: ControlFlags;
    /** Only what changes; JSON for people. */
    readonly before: unknown;
    readonly after: unknown;
  }
  /** It does not fit: `detail` says what is so already, and the way out. */
  | { readonly kind: "refused"; readonly detail: string };

/** What the configuration says, without any override. */
export interface Configured {
  readonly capacity: number;
  /** The label that the backend is offered under. */
  readonly label: string;
}

/** The flags after an action of operation `operation`. Pure; `note.at` is now. */
export function changeFlags(
  action: FlagAction,
  flags: ControlFlags,
  how: {
    readonly note: FlagNote;
    readonly operation: string;
    readonly configured: Configured;
  },
): FlagChange {
  const { note, configured } = how;
  const { backend } = action;
  switch (action.kind) {
    case "cordon":
      return flags.cordon !== null
        ? refused(`Resume "${backend}" first: it was cordoned by ${who(flags.cordon)}`)
        : changed(flags, { cordon: note });
    case "drain": {
      if (flags.drain !== null) {
        return refused(`Undo that drain first: "${backend}" is drained by ${who(flags.drain)}`);
      }
      const deadline = deadlineOf(action.deadline, note.at);
      if (deadline !== null && deadline <= note.at) {
        return refused(`Choose a later deadline: ${iso(deadline)} is over`);
      }
      const { operation } = how;
      return changed(flags, { drain: { ...note, deadline, hold: action.hold, operation } });
    }
    case "resume":
      return flags.cordon === null && flags.drain === null
        ? refused(`Leave "${backend}" as it is: it is neither cordoned nor drained`)
        : changed(flags, {
          ...flags.cordon === null ? {} : { cordon: null },
          ...flags.drain === null ? {} : { drain: null },
        });
    case "capacity":
      return override(flags, "capacity", { ...how, value: action.value }, configured.capacity);
    case "label":
      return override(flags, "label", { ...how, value: action.value }, configured.label);
    default:
      return action satisfies never;
  }
}

/** The flags when the drain of that operation is put back. */
export function undoDrain(flags: ControlFlags, operation: string): FlagChange {
  return flags.drain === null || flags.drain.operation !== operation
    ? refused(`Leave it as it is: no drain of operation "${operation}" stands now`)
    : changed(flags, { drain: null });
}

/**
 * The flags when an executor without an assignment is given up. Those forgotten before that are `gone`
 * by now are dropped, so that the list stays short.
 */
export function forgetExecutor(
  flags: ControlFlags,
  executor: ForgottenExecutor,
  isGone: (executor: ForgottenExecutor) => boolean,
): FlagChange {
  const before = (flags.forgotten ?? []).filter((each) => !isGone(each));
  if (before.some(({ uid }) => uid === executor.uid)) {
    return refused(`Leave "${executor.name}" as it is: it holds no slot already`);
  }
  const forgotten = [...before, executor].slice(-MOST_FORGOTTEN);
  return {
    kind: "changed",
    flags: { ...flags, forgotten },
    before: { holdsSlot: true },
    after: { holdsSlot: false },
  };
}

const MOST_FORGOTTEN = 500;

/** Overrides whose configured value has changed since: the configuration wins. */
export function outdatedOverrides(
  flags: ControlFlags,
  configured: Configured,
): { readonly flags: ControlFlags; readonly dropped: readonly ("capacity" | "label")[] } {
  const { capacity, label } = flags;
  const dropped: ("capacity" | "label")[] = [];
  if (capacity !== null && capacity.replaced !== configured.capacity) dropped.push("capacity");
  if (label !== null && label.replaced !== configured.label) dropped.push("label");
  const without = Object.fromEntries(dropped.map((name) => [name, null]));
  return { flags: { ...flags, ...without }, dropped };
}

function override<K extends "capacity" | "label">(
  flags: ControlFlags,
  name: K,
  { note, value }: { readonly note: FlagNote; readonly value: number | string | null },
  configured: number | string,
): FlagChange {
  const now = flags[name]?.value ?? configured;
  const wanted = value ?? configured;
  if (wanted === now && (flags[name] === null || value !== null)) {
    return refused(`Choose another ${name}: it is ${JSON.stringify(now)} already`);
  }
  // What the configuration says anyway needs no override.
  const flag = wanted === configured ? null : { ...note, value: wanted, replaced: configured };
  return {
    kind: "changed",
    flags: { ...flags, [name]: flag },
    before: { [name]: now },
    after: { [name]: wanted },
  };
}

function changed(flags: ControlFlags, change: Partial<ControlFlags>): FlagChange {
  const next = { ...flags, ...change };
  const shown = (each: ControlFlags) => {
    const { cordoned, drain } = flagsView(each);
    return {
      ...Object.hasOwn(change, "cordon") ? { cordoned } : {},
      ...Object.hasOwn(change, "drain") ? { drain } : {},
    };
  };
  return { kind: "changed", flags: next, before: shown(flags), after: shown(next) };
}

function refused(detail: string): FlagChange {
  return { kind: "refused", detail };
}

function who({ by, at, note }: FlagNote): string {
  return `"${by}" at ${iso(at)}${note === "" ? "" : ` ("${note}")`}`;
}

function deadlineOf(deadline: Deadline | null, now: number): number | null {
  if (deadline === null) return null;
  return deadline.kind === "at" ? deadline.at : now + deadline.ms;
}
