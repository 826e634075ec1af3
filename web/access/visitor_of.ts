import type { RouteContext } from "../route_context.ts";
import type { Entry } from "./access.ts";

const NOBODY = { name: "nobody", role: "viewer" } as const;

/**
 * Who asks, for handlers and pages. Only open addresses are answered to others than those who are known,
 * and those look at nobody; undefined where a request failed before it came to that.
 */
export function visitorOf(
  entry: Entry | undefined,
): Pick<RouteContext, "actor" | "visitor" | "proof"> {
  return entry?.kind === "known"
    ? { actor: entry.actor, visitor: entry.visitor, proof: entry.proof }
    : { actor: NOBODY, visitor: { kind: "anonymous" }, proof: null };
}
