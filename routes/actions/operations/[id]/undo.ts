import { plainForm } from "../../../../web/actions/bodies.ts";
import { named } from "../../../../web/actions/named_action.ts";
import { take } from "../../../../web/actions/take.ts";
import { defineAction } from "../../../../web/define.ts";
import { operationParams } from "../../../../web/query.ts";

/** The button of a drain's row. */
export default defineAction({
  path: "/actions/operations/:id/undo",
  summary: "Put back what a drain has set",
  params: operationParams,
  body: plainForm,
  named: named("undo", "id"),
  page: ({ id }) => `/operations/${encodeURIComponent(id)}`,
  act: (context, { params: { id: operation }, body }) =>
    take(context, { kind: "undo", operation }, body),
});
