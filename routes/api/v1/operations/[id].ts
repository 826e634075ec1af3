import { absentOperation } from "../../../../web/absent.ts";
import { defineApi } from "../../../../web/define.ts";
import { noInput, operationParams } from "../../../../web/query.ts";
import { operationSchema } from "../../../../web/schemas.ts";

/** One operation: who, what, progress, result. */
export default defineApi({
  path: "/api/v1/operations/:id",
  summary: "One operation: who, what, progress, result",
  params: operationParams,
  query: noInput,
  response: operationSchema,
  absent: "No such operation",
  async handler({ views }, { params: { id } }) {
    const data = await views.operation(id);
    return data === undefined ? absentOperation(id) : { kind: "found", data };
  },
});
