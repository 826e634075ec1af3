/** What somebody may do, least first: each may do what those before it may. */
export const ROLES = ["viewer", "operator", "admin"] as const;
/** One of {@link ROLES}. */
export type Role = (typeof ROLES)[number];

/** The role of that name; undefined for any other text. */
export function roleNamed(text: string): Role | undefined {
  return ROLES.find((role) => role === text);
}

/** Who asks for something. */
export interface Actor {
  readonly name: string;
  readonly role: Role;
}

/** True when `held` may do what needs `needed`. */
export function atLeast(held: Role, needed: Role): boolean {
  return ROLES.indexOf(held) >= ROLES.indexOf(needed);
}

/** A group of the provider and the role of its members; the group `*` is everybody who signs in. */
export interface RoleRule {
  readonly group: string;
  readonly role: Role;
}

/** The highest role that any of `groups` gives; undefined when none gives one: then nobody comes in. */
export function roleOfGroups(
  rules: readonly RoleRule[],
  groups: readonly string[],
): Role | undefined {
  const given = rules.filter(({ group }) => group === "*" || groups.includes(group));
  return ROLES.findLast((role) => given.some((rule) => rule.role === role));
}
