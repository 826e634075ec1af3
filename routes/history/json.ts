import { defineRaw } from "../../web/define.ts";
import { jsonFile, readAll } from "../../web/download.ts";
import { readHistory, readHistoryFilters } from "../../web/filters.ts";

/** The history with the page's filters as a JSON file. */
export default defineRaw({
  path: "/history/json",
  async respond(context) {
    const filters = readHistoryFilters(context.url.searchParams);
    const rows = await readAll(readHistory(context.views, filters));
    return jsonFile("history", rows, context);
  },
});
