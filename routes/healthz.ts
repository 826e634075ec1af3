import { defineProbe } from "../web/define.ts";

/** Alive: whoever reads this answer has seen the event loop turn. */
export default defineProbe({
  path: "/healthz",
  respond: () => Response.json({ status: "ok" }, { headers: { "cache-control": "no-store" } }),
});
