import { ApiPage } from "../../../components/ApiPage.tsx";
import { definePage } from "../../../web/define.ts";
import { operationsOf } from "../../../web/described.ts";

/** The JSON API for people; JSON of it is the OpenAPI document. */
export default definePage({
  path: "/api/v1/docs",
  handler({ document, now }) {
    const described = document();
    const data = {
      at: new Date(now).toISOString(),
      operations: operationsOf(described),
      document: described,
    };
    return Promise.resolve({ kind: "found", data });
  },
  title: (_, { dict }) => dict.api.title,
  component: ApiPage,
  island: null,
  json: ({ document }) => document,
});
