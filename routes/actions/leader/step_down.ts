import { plainForm } from "../../../web/actions/bodies.ts";
import { namedStepDown } from "../../../web/actions/named_action.ts";
import { take } from "../../../web/actions/take.ts";
import { defineAction } from "../../../web/define.ts";
import { noInput } from "../../../web/query.ts";

/** The form of the leader's page. */
export default defineAction({
  path: "/actions/leader/step-down",
  summary: "Let another replica lead",
  params: noInput,
  body: plainForm,
  named: namedStepDown,
  page: () => "/leader",
  act: (context, { body }) => take(context, { kind: "step-down" }, body),
});
