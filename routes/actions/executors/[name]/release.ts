import { strangerForm } from "../../../../web/actions/bodies.ts";
import { named } from "../../../../web/actions/named_action.ts";
import { takeExecutorRelease } from "../../../../web/actions/take.ts";
import { defineAction } from "../../../../web/define.ts";
import { executorParams } from "../../../../web/query.ts";

/** The form of an executor that belongs to no job. */
export default defineAction({
  path: "/actions/executors/:name/release",
  summary: "Give up an executor that nobody can account for",
  params: executorParams,
  body: strangerForm,
  named: named("release-executor", "name"),
  page: () => "/executors",
  act: (context, { params: { name }, body }) => takeExecutorRelease(context, name, body),
});
