import { noteBody } from "../../../../../web/actions/bodies.ts";
import { named } from "../../../../../web/actions/named_action.ts";
import { take } from "../../../../../web/actions/take.ts";
import { defineAction } from "../../../../../web/define.ts";
import { backendParams } from "../../../../../web/query.ts";

/** Take nothing new for a backend; stored jobs wait. */
export default defineAction({
  path: "/api/v1/backends/:name/cordon",
  summary: "Take nothing new for a backend; stored jobs wait",
  params: backendParams,
  body: noteBody,
  named: named("cordon", "name"),
  page: null,
  act: (context, { params: { name: backend }, body }) =>
    take(context, { kind: "cordon", backend }, body),
});
