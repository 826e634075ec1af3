import { defineRaw } from "../../web/define.ts";
import { csvFile, readAll } from "../../web/download.ts";
import { readHistory, readHistoryFilters } from "../../web/filters.ts";

/** The history with the page's filters as CSV. */
export default defineRaw({
  path: "/history/csv",
  async respond(context) {
    const filters = readHistoryFilters(context.url.searchParams);
    const rows = await readAll(readHistory(context.views, filters));
    return csvFile("history", rows, [
      "seq",
      "at",
      "event",
      "component",
      "assignmentId",
      "backend",
      "executor",
      "phase",
      "retryDelayMs",
      "detail",
    ], context);
  },
});
