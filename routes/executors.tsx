import { type ExecutorRow, ExecutorsPage } from "../components/ExecutorsPage.tsx";
import { BACKENDS } from "../controller/model/ids.ts";
import type { ExecutorView, Views } from "../controller/views/views.ts";
import { actingOn } from "../web/actions/acting_on.ts";
import { definePage } from "../web/define.ts";
import { loadList, oneOf, readFilters } from "../web/list_page.ts";
import { withoutUndefined } from "../web/without_undefined.ts";

/** All executors: ours with slot and job, unknown and foreign ones with why. */
export default definePage({
  path: "/executors",
  async handler(context) {
    const { views, url } = context;
    const filters = readFilters(url.searchParams, ["backend", "recovered"]);
    const backend = oneOf(BACKENDS, filters.backend);
    const only = oneOf(["true", "false"], filters.recovered);
    const recovered = only === undefined ? undefined : only === "true";
    const set = withoutUndefined({ backend, recovered });
    const list = await loadList(context, filters, (query) => views.executors({ ...query, ...set }));
    const backends = views.backends().map(({ name }) => name);
    const acting = actingOn(context, "");
    return {
      kind: "found",
      data: { ...list, backends, acting, items: withSlots(list.items, views) },
    };
  },
  title: ({ total }, { dict }) => `${dict.pages.executors} ${total}`,
  component: ExecutorsPage,
  island: "executors",
  json: (data) => data,
});

/** Each with the number of the slot that its assignment holds. */
function withSlots(items: readonly ExecutorView[], views: Views): ExecutorRow[] {
  const slots = new Map(
    views.backends().flatMap(({ capacity, slots }) =>
      slots.map(({ assignmentId }, index) => [`${assignmentId}`, { slot: index + 1, capacity }])
    ),
  );
  return items.map((item) => ({
    ...item,
    ...(slots.get(item.assignmentId ?? "") ?? { slot: null, capacity: null }),
  }));
}
