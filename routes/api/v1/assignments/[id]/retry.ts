import { noteBody } from "../../../../../web/actions/bodies.ts";
import { named } from "../../../../../web/actions/named_action.ts";
import { take } from "../../../../../web/actions/take.ts";
import { defineAction } from "../../../../../web/define.ts";
import { assignmentParams } from "../../../../../web/query.ts";

/** Try a parked assignment now. */
export default defineAction({
  path: "/api/v1/assignments/:id/retry",
  summary: "Try a parked assignment now",
  params: assignmentParams,
  body: noteBody,
  named: named("retry", "id"),
  page: null,
  act: (context, { params: { id }, body }) => take(context, { kind: "retry", id }, body),
});
