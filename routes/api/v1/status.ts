import { defineApi } from "../../../web/define.ts";
import { noInput } from "../../../web/query.ts";
import { statusSchema } from "../../../web/schemas.ts";

/** Everything at a glance. The tag ignores ages, so that a poller gets 304 while nothing happens. */
export default defineApi({
  path: "/api/v1/status",
  summary: "Leader, sources and backends at a glance",
  params: noInput,
  query: noInput,
  response: statusSchema,
  etagOf: ({ nextFetchAt: _, sources, ...status }) => ({
    ...status,
    sources: Object.entries(sources).map(([name, { ageMs: _, ...source }]) => [name, source]),
  }),
  handler: ({ views }) => Promise.resolve({ kind: "found", data: views.status() }),
});
