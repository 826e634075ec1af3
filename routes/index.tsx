import { NowPage } from "../components/NowPage.tsx";
import { definePage } from "../web/define.ts";
import { loadBoard, parseBoardQuery } from "../web/load_board.ts";

/** Now: what is there, what waits and why, what runs, what has just ended. */
export default definePage({
  path: "/",
  async handler({ views, url, now, lastEventId }) {
    const query = parseBoardQuery(url.searchParams);
    const data = await loadBoard({ views, lastEventId, now: () => now }, query);
    return { kind: "found", data };
  },
  title: ({ waiting, running }, { dict }) =>
    `${dict.groups.waiting} ${waiting.total} · ${dict.groups.running} ${running.total}`,
  component: NowPage,
  island: "now",
  json: (data) => data,
});
