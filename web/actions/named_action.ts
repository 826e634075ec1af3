import type { ActionKind } from "../../controller/actions/action_kinds.ts";

/** What an address asks for, as the audit names it. */
export interface NamedAction {
  readonly kind: ActionKind;
  readonly target: string;
}

const KINDS = [
  [/^(?:\/api\/v1|\/actions)\/backends\/([^/]+)\/(cordon|drain|resume|capacity|label)$/, null],
  [/^(?:\/api\/v1|\/actions)?\/assignments\/([^/]+)\/(cancel|retry|release)$/, null],
  [/^(?:\/api\/v1|\/actions)\/executors\/([^/]+)\/(release)$/, "release-executor"],
  [/^(?:\/api\/v1|\/actions)\/operations\/([^/]+)\/(undo)$/, null],
  [/^(?:\/api\/v1|\/actions)\/(leader)\/(step-down)$/, null],
] as const;

/** The action of an address, for refusals before its body is read; undefined where it has none. */
export function namedAction(pathname: string): NamedAction | undefined {
  for (const [pattern, fixed] of KINDS) {
    const match = pattern.exec(pathname);
    if (match === null) continue;
    const kind = fixed ?? ACTIONS.find((each) => each === match[2]);
    const target = decoded(match[1] ?? "").slice(0, 253);
    return kind === undefined ? undefined : { kind, target };
  }
  return undefined;
}

const ACTIONS: readonly ActionKind[] = [
  "cordon",
  "drain",
  "resume",
  "capacity",
  "label",
  "cancel",
  "retry",
  "release",
  "undo",
  "step-down",
];

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
