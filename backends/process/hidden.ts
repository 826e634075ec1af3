import type { Creator } from "./folder.ts";

/** Whose hands a folder is in. */
export type Owner = Pick<Creator, "instance" | "process">;

/** What a folder starts with that is no executor's, in the same root. */
const HIDDEN = ".";

/**
 * Name of a folder that is being filled (`new`) or removed (`gone`). It says who is at it: the file
 * `creator` is not there yet at first, and is not the last to go.
 */
export function hiddenName(kind: "new" | "gone", owner: Owner, id: string): string {
  const { instance, process: { pid, startTime } } = owner;
  return `${HIDDEN}${kind}-${pid}-${startTime}-${instance}-${id}`;
}

/** True for what is being filled or removed. */
export function isHalfway(name: string): boolean {
  return name.startsWith(`${HIDDEN}gone-`) || name.startsWith(`${HIDDEN}new-`);
}

/** True for the folders in the root that are no executor's. */
export function isHidden(name: string): boolean {
  return name.startsWith(HIDDEN);
}

/** Who is at a folder of that name; undefined when the name does not say. */
export function ownerOfHidden(name: string): Owner | undefined {
  const [, pid, startTime, instance] = /^\.[a-z]+-([0-9]+)-([0-9]+)-([^-]+)-/.exec(name) ?? [];
  if (pid === undefined || startTime === undefined || instance === undefined) return undefined;
  return { instance, process: { pid: Number(pid), startTime } };
}
