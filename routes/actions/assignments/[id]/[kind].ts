import { assignmentForm, assignmentFormParams } from "../../../../web/actions/bodies.ts";
import { namedByKind } from "../../../../web/actions/named_action.ts";
import { take, takeRelease } from "../../../../web/actions/take.ts";
import { defineAction } from "../../../../web/define.ts";

/** Forms of a job's page. */
export default defineAction({
  path: "/actions/assignments/:id/:kind",
  summary: "Cancel, retry or give up a job",
  params: assignmentFormParams,
  body: assignmentForm,
  named: namedByKind(assignmentFormParams.shape.kind.options, "id"),
  page: ({ id }) => `/assignments/${id}`,
  act(context, { params: { id, kind }, body }) {
    if (kind !== "release") return take(context, { kind, id }, body);
    const { tier } = body;
    return tier === undefined
      ? Promise.resolve({ kind: "bad", detail: `Correct "tier": choose how to give it up` })
      : takeRelease(context, id, { ...body, tier });
  },
});
