import { absentAssignment } from "../../../../web/absent.ts";
import { defineApi } from "../../../../web/define.ts";
import { assignmentParams, noInput } from "../../../../web/query.ts";
import { assignmentDetailSchema } from "../../../../web/schemas.ts";

/** One assignment with its events, phases and last lines. */
export default defineApi({
  path: "/api/v1/assignments/:id",
  summary: "One assignment with its events, phases and last lines",
  params: assignmentParams,
  query: noInput,
  response: assignmentDetailSchema,
  absent: "No such assignment, or older than the events stream",
  async handler({ views, actions }, { params: { id } }) {
    const data = await views.assignment(id);
    const etag = actions.tagOf(id);
    return data === undefined
      ? absentAssignment(id)
      : { kind: "found", data, headers: etag === null ? {} : { etag } };
  },
});
