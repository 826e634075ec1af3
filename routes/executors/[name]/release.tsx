import { inert } from "../../../components/inert.ts";
import { StrangerPage } from "../../../components/StrangerPage.tsx";
import type { ExecutorView, Views } from "../../../controller/views/views.ts";
import { actingOn } from "../../../web/actions/acting_on.ts";
import { definePage } from "../../../web/define.ts";

/** What giving up an executor that belongs to no job would do. */
export default definePage({
  path: "/executors/:name/release",
  async handler(context) {
    const { views, now, param, lastEventId } = context;
    const executor = await find(views, param("name"));
    if (executor === undefined) {
      return {
        kind: "absent",
        detail: `Look again: no executor "${
          param("name").slice(0, 100)
        }" is there that belongs to no job`,
      };
    }
    return {
      kind: "found",
      data: {
        at: new Date(now).toISOString(),
        lastEventId: lastEventId(),
        executor,
        acting: actingOn(context, executor.name),
      },
    };
  },
  title: ({ executor }, { dict }) =>
    `${dict.operation.actions["release"]} › ${inert(executor.name, 100)}`,
  component: StrangerPage,
  // It must not change under the hand: the tag tells when the executor has.
  island: null,
  json: (data) => data,
});

const MOST_EXECUTORS = 100_000;

async function find(views: Views, name: string): Promise<ExecutorView | undefined> {
  const { items } = await views.executors({ limit: MOST_EXECUTORS, cursor: null });
  return items.find((each) => each.name === name && each.assignmentId === null);
}
