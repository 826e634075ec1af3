import { strangerBody } from "../../../../../web/actions/bodies.ts";
import { named } from "../../../../../web/actions/named_action.ts";
import { takeExecutorRelease } from "../../../../../web/actions/take.ts";
import { defineAction } from "../../../../../web/define.ts";
import { executorParams } from "../../../../../web/query.ts";

/** Give up an executor that nobody can account for. */
export default defineAction({
  path: "/api/v1/executors/:name/release",
  summary: "Give up an executor that nobody can account for",
  params: executorParams,
  body: strangerBody,
  named: named("release-executor", "name"),
  page: null,
  act: (context, { params: { name }, body }) => takeExecutorRelease(context, name, body),
});
