import { strangerBody } from "../../../../../web/action_bodies.ts";
import { takeExecutorRelease } from "../../../../../web/action_routes.ts";
import { defineAction } from "../../../../../web/define.ts";
import { executorParams } from "../../../../../web/query.ts";

/** Give up an executor that nobody can account for. */
export default defineAction({
  path: "/api/v1/executors/:name/release",
  summary: "Give up an executor that nobody can account for",
  params: executorParams,
  body: strangerBody,
  page: null,
  act: (context, { params: { name }, body }) => takeExecutorRelease(context, name, body),
});
