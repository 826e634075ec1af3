import { noteBody } from "../../../../web/actions/bodies.ts";
import { namedStepDown } from "../../../../web/actions/named_action.ts";
import { take } from "../../../../web/actions/take.ts";
import { defineAction } from "../../../../web/define.ts";
import { noInput } from "../../../../web/query.ts";

/** Let another replica lead; this process ends and is started again. */
export default defineAction({
  path: "/api/v1/leader/step-down",
  summary: "Let another replica lead; this process ends and is started again",
  params: noInput,
  body: noteBody,
  named: namedStepDown,
  page: null,
  act: (context, { body }) => take(context, { kind: "step-down" }, body),
});
