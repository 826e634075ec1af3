import { absentBackend } from "../../../../web/absent.ts";
import { defineApi } from "../../../../web/define.ts";
import { backendParams, noInput } from "../../../../web/query.ts";
import { backendSchema } from "../../../../web/schemas.ts";

/** One backend with its slots. */
export default defineApi({
  path: "/api/v1/backends/:name",
  summary: "One backend with its slots",
  params: backendParams,
  query: noInput,
  response: backendSchema,
  absent: "No such backend, or not enabled here",
  handler({ views, actions }, { params: { name } }) {
    const data = views.backend(name);
    const etag = actions.tagOf(name);
    return Promise.resolve(
      data === undefined
        ? absentBackend(name)
        : { kind: "found", data, headers: etag === null ? {} : { etag } },
    );
  },
});
