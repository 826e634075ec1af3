import { defineProbe } from "../web/define.ts";

/** Prometheus text format. */
export default defineProbe({
  path: "/metrics",
  respond: async ({ metricsText }) =>
    new Response(await metricsText(), {
      headers: {
        "content-type": "text/plain; version=0.0.4; charset=utf-8",
        "cache-control": "no-store",
      },
    }),
});
