import { defineApi, foundPage } from "../../../web/define.ts";
import { executorQuery, noInput, pageOf } from "../../../web/query.ts";
import { executorSchema } from "../../../web/schemas.ts";

/** Executors of all backends, unknown and foreign ones too. */
export default defineApi({
  path: "/api/v1/executors",
  summary: "Executors of all backends, unknown and foreign ones too",
  params: noInput,
  query: executorQuery,
  response: pageOf(executorSchema),
  handler: ({ views, url }, { query: { backend, recovered, ...page } }) =>
    foundPage(url, () =>
      views.executors({
        ...page,
        ...(backend === undefined ? {} : { backend }),
        ...(recovered === undefined ? {} : { recovered }),
      })),
});
