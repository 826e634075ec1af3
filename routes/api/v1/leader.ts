import { defineApi } from "../../../web/define.ts";
import { noInput } from "../../../web/query.ts";
import { leaderSchema } from "../../../web/schemas.ts";

/** Who leads, and the fields of the Lease. */
export default defineApi({
  path: "/api/v1/leader",
  summary: "Who leads, and the fields of the Lease",
  params: noInput,
  query: noInput,
  response: leaderSchema,
  handler: ({ views }) => Promise.resolve({ kind: "found", data: views.leader() }),
});
