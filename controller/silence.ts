import type { Entry } from "./entry.ts";
import type { BackendName } from "./model/ids.ts";

/**
 * Silence of an executor that proves its end without its backend's word, ms: a sandbox whose program has
 * ended goes on being called running (SPEC 10).
 */
export const SILENCE_ALONE_MS: Readonly<Record<BackendName, number>> = {
  pod: Infinity,
  vm: 180_000,
};

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
