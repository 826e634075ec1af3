import { inert } from "../../components/inert.ts";
import { type ReleaseData, ReleasePage } from "../../components/ReleasePage.tsx";
import { RELEASE_TIERS } from "../../controller/actions/action_kinds.ts";
import { parseAssignmentId } from "../../controller/model/ids.ts";
import { definePage, type PageRoute } from "../define.ts";
import { actingOn } from "./acting_on.ts";

/** What giving up a job would do, in the ways that `kind` offers; nothing happens before a button is pressed. */
export function givingUpPage(kind: ReleaseData["kind"]): PageRoute {
  const tiers = kind === "cancel" ? RELEASE_TIERS.slice(0, 1) : RELEASE_TIERS;
  return definePage({
    path: `/assignments/:id/${kind}`,
    handler(context) {
      const { actions, param } = context;
      const id = parseAssignmentId(param("id"));
      const previews = id === undefined
        ? []
        : tiers.flatMap((tier) => actions.preview(id, tier) ?? []);
      return Promise.resolve(
        id === undefined || previews.length === 0
          ? {
            kind: "absent",
            detail: `Look for another assignment: "${
              param("id").slice(0, 100)
            }" cannot be given up here`,
          }
          : { kind: "found", data: { kind, previews, acting: actingOn(context, id) } },
      );
    },
    title: ({ previews: [first] }, { dict }) =>
      `${dict.operation.actions[kind]} › ${inert(first?.assignment.job ?? "", 100)}`,
    component: ReleasePage,
    // It must not change under the hand: the tag tells when the job has.
    island: null,
    json: (data) => data,
  });
}
