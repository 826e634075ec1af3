import { ApiPage } from "../../../components/ApiPage.tsx";
import { definePage } from "../../../web/define.ts";
import { operationsOf } from "../../../web/described.ts";

/** The JSON API for people; JSON of it is the OpenAPI document. */
export default definePage({
  path: "/api/v1/docs",
  handler({ document }) {
    const described = document();
    const data = {
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
