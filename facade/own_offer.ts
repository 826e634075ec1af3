import type { Caller } from "./caller.ts";
import type { Offer, Registry } from "./registry.ts";

/** What a caller is told of every refusal; why is for our log only. */
export const NO_PART = "this executor has no part in that";

/** What a caller is told before recovery is complete. */
export const STARTING = "the controller is starting: try again";

/** Why a caller is refused, for our log. */
export const REFUSALS = {
  foreign: "the assignment is another identity's",
  unknown: "the assignment is not known",
  otherGate: "another gate has claimed this job",
} as const;

/**
 * A caller's own assignment, or why it has none; `starting`: it may turn up; `unproven`: it is there,
 * and waits for what the caller says of itself.
 */
export type OwnOffer =
  | { readonly kind: "found"; readonly offer: Offer }
  | { readonly kind: "refused"; readonly why: string }
  | { readonly kind: "starting" }
  | { readonly kind: "unproven" };

/** Finds the assignment that a caller reports on. One that another gate has claimed is not its own. */
export function ownOffer(
  registry: Pick<Registry, "resolve" | "isComplete">,
  caller: Caller,
): OwnOffer {
  const found = registry.resolve(caller.assignment, caller.spiffeId);
  if (found.kind === "foreign") return { kind: "refused", why: REFUSALS.foreign };
  if (found.kind === "unproven") return found;
  if (found.kind === "unknown") {
    return registry.isComplete ? { kind: "refused", why: REFUSALS.unknown } : { kind: "starting" };
  }
  const { state } = found.offer;
  return state.kind === "claimed" && state.gate !== caller.gate
    ? { kind: "refused", why: REFUSALS.otherGate }
    : found;
}
