import { defineRaw } from "../../web/define.ts";
import { csvFile, readAll } from "../../web/download.ts";
import { readAudit, readAuditFilters } from "../../web/filters.ts";

/** The audit with the page's filters as CSV. */
export default defineRaw({
  path: "/audit/csv",
  async respond(context) {
    const filters = readAuditFilters(context.url.searchParams);
    const rows = await readAll(readAudit(context.views, filters));
    return csvFile("audit", rows, [
      "id",
      "at",
      "actor",
      "role",
      "action",
      "target",
      "before",
      "after",
      "note",
      "requestId",
      "result",
      "error",
    ], context);
  },
});
