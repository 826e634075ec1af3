import { inert } from "../../components/inert.ts";
import { OperationPage } from "../../components/OperationPage.tsx";
import { actingOn } from "../../web/actions/acting_on.ts";
import { definePage } from "../../web/define.ts";

/** One operation from its start to its result. */
export default definePage({
  path: "/operations/:id",
  async handler(context) {
    const { views, now, param, lastEventId: newest } = context;
    const lastEventId = newest();
    const operation = await views.operation(param("id"));
    return operation === undefined
      ? {
        kind: "absent",
        detail: `Look for another operation: "${param("id").slice(0, 200)}" is not known`,
      }
      : {
        kind: "found",
        data: {
          at: new Date(now).toISOString(),
          lastEventId,
          operation,
          acting: { ...actingOn(context, operation.target), tag: null },
        },
      };
  },
  title: ({ operation }, { dict }) =>
    `${dict.operation.actions[operation.action] ?? inert(operation.action, 60)} › ` +
    `${inert(operation.target, 100)} · ${dict.operation.states[operation.state]}`,
  component: OperationPage,
  island: "operation",
  json: (data) => data,
});
