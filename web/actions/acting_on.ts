import type { Acting } from "../../components/acting.ts";
import type { RouteContext } from "../route_context.ts";

/** What the forms of a page need; `target` is what they act on. */
export function actingOn(
  { views, actions, actor, requestId }: Pick<
    RouteContext,
    "views" | "actions" | "actor" | "requestId"
  >,
  target: string,
): Acting {
  const { leading, holder, self } = views.leader();
  return {
    role: actor.role,
    key: requestId,
    tag: actions.tagOf(target),
    elsewhere: leading || holder === null || holder === self ? null : holder,
  };
}
