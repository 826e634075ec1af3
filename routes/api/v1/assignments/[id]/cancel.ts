import { noteBody } from "../../../../../web/actions/bodies.ts";
import { named } from "../../../../../web/actions/named_action.ts";
import { take } from "../../../../../web/actions/take.ts";
import { defineAction } from "../../../../../web/define.ts";
import { assignmentParams } from "../../../../../web/query.ts";

/** Cancel a job: at once before it runs, else by telling its runner. */
export default defineAction({
  path: "/api/v1/assignments/:id/cancel",
  summary: "Cancel a job: at once before it runs, else by telling its runner",
  params: assignmentParams,
  body: noteBody,
  named: named("cancel", "id"),
  page: null,
  act: (context, { params: { id }, body }) => take(context, { kind: "cancel", id }, body),
});
