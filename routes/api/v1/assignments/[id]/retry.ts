import { noteBody } from "../../../../../web/action_bodies.ts";
import { take } from "../../../../../web/action_routes.ts";
import { defineAction } from "../../../../../web/define.ts";
import { assignmentParams } from "../../../../../web/query.ts";

/** Try a parked assignment now. */
export default defineAction({
  path: "/api/v1/assignments/:id/retry",
  summary: "Try a parked assignment now",
  params: assignmentParams,
  body: noteBody,
  page: null,
  act: (context, { params: { id }, body }) => take(context, { kind: "retry", id }, body),
});
