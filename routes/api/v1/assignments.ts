import { defineApi, foundPage } from "../../../web/define.ts";
import { assignmentQuery, noInput, pageOf } from "../../../web/query.ts";
import { assignmentSchema } from "../../../web/schemas.ts";

/** Assignments in the order of their hand-out; ended ones newest first. */
export default defineApi({
  path: "/api/v1/assignments",
  summary: "Assignments in the order of their hand-out; ended ones newest first",
  params: noInput,
  query: assignmentQuery,
  response: pageOf(assignmentSchema),
  handler: ({ views, url }, { query: { backend, state, repository, ...page } }) =>
    foundPage(url, () =>
      views.assignments({
        ...page,
        ...(backend === undefined ? {} : { backend }),
        ...(state === undefined ? {} : { state }),
        ...(repository === undefined ? {} : { repository }),
      })),
});
