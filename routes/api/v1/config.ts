import { defineApi } from "../../../web/define.ts";
import { noInput } from "../../../web/query.ts";
import { configSchema } from "../../../web/schemas.ts";

/** The configuration in effect, without secrets. */
export default defineApi({
  path: "/api/v1/config",
  summary: "Effective configuration without secrets: variable to value",
  params: noInput,
  query: noInput,
  response: configSchema,
  handler: ({ views }) => Promise.resolve({ kind: "found", data: { ...views.config() } }),
});
