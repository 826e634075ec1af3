import { defineApi, foundPage } from "../../../web/define.ts";
import { noInput, pageOf, pageQuery } from "../../../web/query.ts";
import { auditSchema } from "../../../web/schemas.ts";

/** Who did what, newest first. */
export default defineApi({
  path: "/api/v1/audit",
  summary: "Who did what, newest first",
  params: noInput,
  query: pageQuery,
  response: pageOf(auditSchema),
  handler: ({ views, url }, { query }) => foundPage(url, () => views.audit(query)),
});
