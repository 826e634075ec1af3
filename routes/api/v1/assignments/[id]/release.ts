import { releaseBody } from "../../../../../web/actions/bodies.ts";
import { named } from "../../../../../web/actions/named_action.ts";
import { takeRelease } from "../../../../../web/actions/take.ts";
import { defineAction } from "../../../../../web/define.ts";
import { assignmentParams } from "../../../../../web/query.ts";

/** Give an assignment up in one of three tiers; its preview says what that does. */
export default defineAction({
  path: "/api/v1/assignments/:id/release",
  summary: "Give an assignment up in one of three tiers; its preview says what that does",
  params: assignmentParams,
  body: releaseBody,
  named: named("release", "id"),
  page: null,
  act: (context, { params: { id }, body }) => takeRelease(context, id, body),
});
