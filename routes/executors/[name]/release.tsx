import { inert } from "../../../components/inert.ts";
import { StrangerPage } from "../../../components/StrangerPage.tsx";
import { actingOn } from "../../../web/actions/acting_on.ts";
import { definePage } from "../../../web/define.ts";
import { findExecutor } from "../../../web/find_executor.ts";

/** What giving up an executor that belongs to no job would do. */
export default definePage({
  path: "/executors/:name/release",
  async handler(context) {
    const { views, param } = context;
    const executor = await findExecutor(views, param("name"));
    if (executor === undefined || executor.assignmentId !== null) {
      return {
        kind: "absent",
        detail: `Look again: no executor "${
          param("name").slice(0, 100)
        }" is there that belongs to no job`,
      };
    }
    return { kind: "found", data: { executor, acting: actingOn(context, executor.name) } };
  },
  title: ({ executor }, { dict }) =>
    `${dict.operation.actions["release"]} › ${inert(executor.name, 100)}`,
  component: StrangerPage,
  // It must not change under the hand: the tag tells when the executor has.
  island: null,
  json: (data) => data,
});
