import { backendForm, backendFormParams } from "../../../../web/actions/bodies.ts";
import { backendFormAction } from "../../../../web/actions/backend_form.ts";
import { namedByKind } from "../../../../web/actions/named_action.ts";
import { take } from "../../../../web/actions/take.ts";
import { defineAction } from "../../../../web/define.ts";

/** Forms of a backend's page. */
export default defineAction({
  path: "/actions/backends/:name/:kind",
  summary: "Change what is taken for a backend",
  params: backendFormParams,
  body: backendForm,
  named: namedByKind(backendFormParams.shape.kind.options, "name"),
  page: ({ name }) => `/backends/${name}`,
  act: (context, { params, body }) => take(context, backendFormAction(params, body), body),
});
