import { noteBody } from "../../../../../web/actions/bodies.ts";
import { named } from "../../../../../web/actions/named_action.ts";
import { take } from "../../../../../web/actions/take.ts";
import { defineAction } from "../../../../../web/define.ts";
import { backendParams } from "../../../../../web/query.ts";

/** Lift cordon and drain of a backend, and fetch at once. */
export default defineAction({
  path: "/api/v1/backends/:name/resume",
  summary: "Lift cordon and drain of a backend, and fetch at once",
  params: backendParams,
  body: noteBody,
  named: named("resume", "name"),
  page: null,
  act: (context, { params: { name: backend }, body }) =>
    take(context, { kind: "resume", backend }, body),
});
