import { noteBody } from "../../../../../web/actions/bodies.ts";
import { named } from "../../../../../web/actions/named_action.ts";
import { take } from "../../../../../web/actions/take.ts";
import { defineAction } from "../../../../../web/define.ts";
import { operationParams } from "../../../../../web/query.ts";

/** Put back what a drain has set. */
export default defineAction({
  path: "/api/v1/operations/:id/undo",
  summary: "Put back what a drain has set",
  params: operationParams,
  body: noteBody,
  named: named("undo", "id"),
  page: null,
  act: (context, { params: { id: operation }, body }) =>
    take(context, { kind: "undo", operation }, body),
});
