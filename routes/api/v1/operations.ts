import { defineApi, foundPage } from "../../../web/define.ts";
import { given, noInput, operationQuery, pageOf } from "../../../web/query.ts";
import { operationSchema } from "../../../web/schemas.ts";

/** What operators have begun, newest first. */
export default defineApi({
  path: "/api/v1/operations",
  summary: "What operators have begun, newest first",
  params: noInput,
  query: operationQuery,
  response: pageOf(operationSchema),
  handler: ({ views, url }, { query }) => foundPage(url, () => views.operations(given(query))),
});
