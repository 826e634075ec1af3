import type { ActionKind, ReleaseTier } from "../actions/action_kinds.ts";
import { atLeast, type Role } from "../model/role.ts";

/**
 * Who may do what. Operators do what the person on call does to jobs, and what can be undone; admins
 * also change what the configuration says, who leads, and forget what nothing has proven gone.
 */
const NEEDED: Readonly<Record<ActionKind, Role>> = {
  "cordon": "operator",
  "drain": "operator",
  "resume": "operator",
  "undo": "operator",
  "cancel": "operator",
  "retry": "operator",
  "release": "operator",
  "release-executor": "operator",
  "capacity": "admin",
  "label": "admin",
  "step-down": "admin",
};

/** The least role that may take an action; without its tier that for a release without *forget*. */
export function roleFor(
  { kind, tier }: { readonly kind: ActionKind; readonly tier?: ReleaseTier },
): Role {
  return tier === "forget" ? "admin" : NEEDED[kind];
}

/** Why a role may not; null when it may. */
export function faultOfRole(held: Role, needed: Role): string | null {
  return atLeast(held, needed)
    ? null
    : `Ask somebody with the role ${needed}: yours is ${held}, nothing was done`;
}
