import { defineApi } from "../../../web/define.ts";
import { noInput, pageOf } from "../../../web/query.ts";
import { backendSchema } from "../../../web/schemas.ts";

/** All backends with their slots. */
export default defineApi({
  path: "/api/v1/backends",
  summary: "All backends with their slots",
  params: noInput,
  query: noInput,
  response: pageOf(backendSchema),
  handler({ views }) {
    const items = views.backends();
    return Promise.resolve({
      kind: "found",
      data: { items, nextCursor: null, total: items.length },
    });
  },
});
