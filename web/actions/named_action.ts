import type { ActionKind } from "../../controller/actions/action_kinds.ts";

/** What an address asks for, as the audit names it. */
export interface NamedAction {
  readonly kind: ActionKind;
  readonly target: string;
}

/** Parameters of an address, decoded, whatever they say. */
export type RawParams = Readonly<Record<string, string>>;

/** The action of an address, for refusals before its body is read; undefined where it asks for none. */
export type NameAction = (params: RawParams) => NamedAction | undefined;

/** No name of ours is longer. */
const MAX_TARGET = 253;

/** Of an address that asks for one kind, on what `param` says. */
export function named(kind: ActionKind, param: "name" | "id"): NameAction {
  return (params) => ({ kind, target: targetIn(params, param) });
}

/** Of an address whose parameter `kind` is one of `kinds`. */
export function namedByKind(kinds: readonly ActionKind[], param: "name" | "id"): NameAction {
  return (params) => {
    const kind = kinds.find((each) => each === params.kind);
    return kind === undefined ? undefined : { kind, target: targetIn(params, param) };
  };
}

/** Of an address that asks the leader to step down. */
export function namedStepDown(): NamedAction {
  return { kind: "step-down", target: "leader" };
}

function targetIn(params: RawParams, param: string): string {
  return (params[param] ?? "").slice(0, MAX_TARGET);
}
