import { defineRaw } from "../../web/define.ts";
import { jsonFile, readAll } from "../../web/download.ts";
import { readAudit, readAuditFilters } from "../../web/filters.ts";

/** The audit with the page's filters as a JSON file. */
export default defineRaw({
  path: "/audit/json",
  async respond(context) {
    const filters = readAuditFilters(context.url.searchParams);
    const rows = await readAll(readAudit(context.views, filters));
    return jsonFile("audit", rows, context);
  },
});
