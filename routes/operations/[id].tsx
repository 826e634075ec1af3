import { inert } from "../../components/inert.ts";
import { OperationPage } from "../../components/OperationPage.tsx";
import { actingOn } from "../../web/actions/acting_on.ts";
import { absentOperation } from "../../web/absent.ts";
import { definePage } from "../../web/define.ts";

/** One operation from its start to its result. */
export default definePage({
  path: "/operations/:id",
  async handler(context) {
    const { views, param } = context;
    const operation = await views.operation(param("id"));
    if (operation === undefined) return absentOperation(param("id"));
    const acting = { ...actingOn(context, operation.target), tag: null };
    return { kind: "found", data: { operation, acting } };
  },
  title: ({ operation }, { dict }) =>
    `${dict.operation.actions[operation.action] ?? inert(operation.action, 60)} › ` +
    `${inert(operation.target, 100)} · ${dict.operation.states[operation.state]}`,
  component: OperationPage,
  island: "operation",
  json: (data) => data,
});
