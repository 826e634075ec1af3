import type { Acting } from "../../components/acting.ts";
import type { ReleaseData } from "../../components/ReleasePage.tsx";
import { RELEASE_TIERS } from "../../controller/actions/action_kinds.ts";
import { parseAssignmentId } from "../../controller/model/ids.ts";
import type { Answer, RouteContext } from "../define.ts";

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

/** What giving up a job would do, in the ways that `kind` offers. */
export function readRelease(
  context: RouteContext,
  kind: ReleaseData["kind"],
): Promise<Answer<ReleaseData>> {
  const { actions, now, param, lastEventId } = context;
  const id = parseAssignmentId(param("id"));
  const tiers = kind === "cancel" ? RELEASE_TIERS.slice(0, 1) : RELEASE_TIERS;
  const previews = id === undefined ? [] : tiers.flatMap((tier) => actions.preview(id, tier) ?? []);
  if (id === undefined || previews.length === 0) {
    return Promise.resolve({
      kind: "absent",
      detail: `Look for another assignment: "${param("id").slice(0, 100)}" cannot be given up here`,
    });
  }
  return Promise.resolve({
    kind: "found",
    data: {
      at: new Date(now).toISOString(),
      lastEventId: lastEventId(),
      kind,
      previews,
      acting: actingOn(context, id),
    },
  });
}
