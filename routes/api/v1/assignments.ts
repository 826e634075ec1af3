import { defineApi } from "../../../web/define.ts";
import { foundPage } from "../../../web/list_page.ts";
import { assignmentQuery, noInput, pageOf } from "../../../web/query.ts";
import { assignmentSchema } from "../../../web/schemas.ts";
import { withoutUndefined } from "../../../web/without_undefined.ts";

/** Assignments in the order of their hand-out; ended ones newest first. */
export default defineApi({
  path: "/api/v1/assignments",
  summary: "Assignments in the order of their hand-out; ended ones newest first",
  params: noInput,
  query: assignmentQuery,
  response: pageOf(assignmentSchema),
  handler: ({ views, url }, { query }) =>
    foundPage(url, () => views.assignments(withoutUndefined(query))),
});
