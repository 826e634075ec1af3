import { defineApi } from "../../../web/define.ts";
import { foundPage } from "../../../web/list_page.ts";
import { auditQuery, noInput, pageOf } from "../../../web/query.ts";
import { auditSchema } from "../../../web/schemas.ts";
import { withoutUndefined } from "../../../web/without_undefined.ts";

/** Who did what, newest first. */
export default defineApi({
  path: "/api/v1/audit",
  summary: "Who did what, newest first",
  params: noInput,
  query: auditQuery,
  response: pageOf(auditSchema),
  handler: ({ views, url }, { query }) =>
    foundPage(url, () => views.audit(withoutUndefined(query))),
});
