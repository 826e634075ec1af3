import { defineApi } from "../../../web/define.ts";
import { foundPage } from "../../../web/list_page.ts";
import { noInput, operationQuery, pageOf } from "../../../web/query.ts";
import { operationSchema } from "../../../web/schemas.ts";
import { withoutUndefined } from "../../../web/without_undefined.ts";

/** What operators have begun, newest first. */
export default defineApi({
  path: "/api/v1/operations",
  summary: "What operators have begun, newest first",
  params: noInput,
  query: operationQuery,
  response: pageOf(operationSchema),
  handler: ({ views, url }, { query }) =>
    foundPage(url, () => views.operations(withoutUndefined(query))),
});
