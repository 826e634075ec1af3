import { capacityBody } from "../../../../../web/actions/bodies.ts";
import { named } from "../../../../../web/actions/named_action.ts";
import { take } from "../../../../../web/actions/take.ts";
import { defineAction } from "../../../../../web/define.ts";
import { backendParams } from "../../../../../web/query.ts";

/** Set the slots of a backend in place of the configuration. */
export default defineAction({
  path: "/api/v1/backends/:name/capacity",
  summary: "Set the slots of a backend in place of the configuration",
  params: backendParams,
  body: capacityBody,
  named: named("capacity", "name"),
  page: null,
  act: (context, { params: { name: backend }, body }) =>
    take(context, { kind: "capacity", backend, value: body.capacity }, body),
});
