import { drainBody } from "../../../../../web/actions/bodies.ts";
import { deadlineOf } from "../../../../../web/actions/backend_form.ts";
import { named } from "../../../../../web/actions/named_action.ts";
import { take } from "../../../../../web/actions/take.ts";
import { defineAction } from "../../../../../web/define.ts";
import { backendParams } from "../../../../../web/query.ts";

/** Take nothing new for a backend and wait until nothing runs. */
export default defineAction({
  path: "/api/v1/backends/:name/drain",
  summary: "Take nothing new for a backend and wait until nothing runs",
  params: backendParams,
  body: drainBody,
  named: named("drain", "name"),
  page: null,
  act: (context, { params: { name: backend }, body }) => {
    const { hold } = body;
    const deadline = deadlineOf(body.deadline, body.deadlineSeconds);
    return take(context, { kind: "drain", backend, hold, deadline }, body);
  },
});
