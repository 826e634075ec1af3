import { HistoryPage } from "../components/HistoryPage.tsx";
import { definePage } from "../web/define.ts";
import { readHistory, readHistoryFilters } from "../web/filters.ts";
import { loadList } from "../web/list_page.ts";

/** What happened to all assignments, newest first. */
export default definePage({
  path: "/history",
  async handler(context) {
    const filters = readHistoryFilters(context.url.searchParams);
    const data = await loadList(context, filters, readHistory(context.views, filters));
    return { kind: "found", data };
  },
  title: (_, { dict }) => dict.pages.history,
  component: HistoryPage,
  island: "history",
  json: (data) => data,
});
