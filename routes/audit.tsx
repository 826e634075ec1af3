import { AuditPage } from "../components/AuditPage.tsx";
import { definePage } from "../web/define.ts";
import { readAudit, readAuditFilters } from "../web/filters.ts";
import { loadList } from "../web/list_page.ts";

/** Who did what, refused actions too, newest first. */
export default definePage({
  path: "/audit",
  async handler(context) {
    const filters = readAuditFilters(context.url.searchParams);
    const data = await loadList(context, filters, readAudit(context.views, filters));
    return { kind: "found", data };
  },
  title: (_, { dict }) => dict.pages.audit,
  component: AuditPage,
  island: "audit",
  json: (data) => data,
});
