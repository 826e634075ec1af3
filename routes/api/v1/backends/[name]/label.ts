import { labelBody } from "../../../../../web/actions/bodies.ts";
import { named } from "../../../../../web/actions/named_action.ts";
import { take } from "../../../../../web/actions/take.ts";
import { defineAction } from "../../../../../web/define.ts";
import { backendParams } from "../../../../../web/query.ts";

/** Offer the vm backend under its canary label, or under its own. */
export default defineAction({
  path: "/api/v1/backends/:name/label",
  summary: "Offer the vm backend under its canary label, or under its own",
  params: backendParams,
  body: labelBody,
  named: named("label", "name"),
  page: null,
  act: (context, { params: { name: backend }, body }) =>
    take(context, { kind: "label", backend, value: body.label }, body),
});
