import { tierQuery } from "../../../../../web/actions/bodies.ts";
import { defineApi } from "../../../../../web/define.ts";
import { assignmentParams } from "../../../../../web/query.ts";
import { releasePreviewSchema } from "../../../../../web/actions/schemas.ts";
import { absentAssignment } from "../../../../../web/absent.ts";

/** What giving an assignment up would do, and to which job. Nothing is done. */
export default defineApi({
  path: "/api/v1/assignments/:id/preview",
  summary: "What giving an assignment up would do, and to which job",
  params: assignmentParams,
  query: tierQuery,
  response: releasePreviewSchema,
  absent: "Not known to the leader any more, or asked of a replica that does not lead",
  handler({ actions }, { params: { id }, query: { tier } }) {
    const data = actions.preview(id, tier);
    return Promise.resolve(
      data === undefined
        ? absentAssignment(id)
        : { kind: "found", data, headers: { etag: data.tag } },
    );
  },
});
