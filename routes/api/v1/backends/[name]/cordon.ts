import { noteBody } from "../../../../../web/action_bodies.ts";
import { take } from "../../../../../web/action_routes.ts";
import { defineAction } from "../../../../../web/define.ts";
import { backendParams } from "../../../../../web/query.ts";

/** Take nothing new for a backend; stored jobs wait. */
export default defineAction({
  path: "/api/v1/backends/:name/cordon",
  summary: "Take nothing new for a backend; stored jobs wait",
  params: backendParams,
  body: noteBody,
  page: null,
  act: (context, { params: { name: backend }, body }) =>
    take(context, { kind: "cordon", backend }, body),
});
