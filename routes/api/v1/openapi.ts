import { defineRaw } from "../../../web/define.ts";

export default defineRaw({
  path: "/api/v1/openapi.json",
  respond: ({ document }) =>
    Response.json(document(), { headers: { "cache-control": "no-store" } }),
});
