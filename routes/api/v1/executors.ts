import { defineApi } from "../../../web/define.ts";
import { foundPage } from "../../../web/list_page.ts";
import { executorQuery, noInput, pageOf } from "../../../web/query.ts";
import { executorSchema } from "../../../web/schemas.ts";
import { withoutUndefined } from "../../../web/without_undefined.ts";

/** Executors of all backends, unknown and foreign ones too. */
export default defineApi({
  path: "/api/v1/executors",
  summary: "Executors of all backends, unknown and foreign ones too",
  params: noInput,
  query: executorQuery,
  response: pageOf(executorSchema),
  handler: ({ views, url }, { query }) =>
    foundPage(url, () => views.executors(withoutUndefined(query))),
});
