import { defineApi } from "../../../web/define.ts";
import { foundPage } from "../../../web/list_page.ts";
import { historyQuery, noInput, pageOf } from "../../../web/query.ts";
import { historySchema } from "../../../web/schemas.ts";
import { withoutUndefined } from "../../../web/without_undefined.ts";

/** What happened to all assignments, newest first. */
export default defineApi({
  path: "/api/v1/history",
  summary: "What happened to all assignments, newest first",
  params: noInput,
  query: historyQuery,
  response: pageOf(historySchema),
  handler: ({ views, url }, { query }) =>
    foundPage(url, () => views.history(withoutUndefined(query))),
});
