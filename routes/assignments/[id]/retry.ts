import { plainForm } from "../../../web/actions/bodies.ts";
import { named } from "../../../web/actions/named_action.ts";
import { take } from "../../../web/actions/take.ts";
import { defineAction } from "../../../web/define.ts";
import { assignmentParams } from "../../../web/query.ts";

/** The button of the job's page. */
export default defineAction({
  path: "/assignments/:id/retry",
  summary: "Try a parked assignment now",
  params: assignmentParams,
  body: plainForm,
  named: named("retry", "id"),
  page: ({ id }) => `/assignments/${id}`,
  act: (context, { params: { id }, body }) => take(context, { kind: "retry", id }, body),
});
