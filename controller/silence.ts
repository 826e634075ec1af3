import type { Entry } from "./entry.ts";

/**
 * For how long nothing was heard of the executor, ms. It counts from `facadeSince` at the earliest, and not
 * at all while nobody could have heard it (null). Both moments are of the monotonic clock.
 */
export function silenceOf(
  { lastSeen }: Pick<Entry, "lastSeen">,
  { now, facadeSince }: { readonly now: number; readonly facadeSince: number | null },
): number {
  return facadeSince === null ? 0 : now - Math.max(facadeSince, lastSeen ?? 0);
}
