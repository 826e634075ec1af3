import { defineRaw } from "../../../web/define.ts";

/** The OpenAPI document of this API, made of the schemas of the routes. */
export default defineRaw({
  path: "/api/v1/openapi.json",
  respond: ({ document }) =>
    Response.json(document(), { headers: { "cache-control": "no-store" } }),
});
