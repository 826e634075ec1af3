import { defineProbe } from "../web/define.ts";

/** 200 when ready, 503 else; the body names the role, every check, and why it fails. */
export default defineProbe({
  path: "/readyz",
  respond({ readiness }) {
    const { ready, role, checks } = readiness();
    return Response.json({ ready, role, checks }, {
      status: ready ? 200 : 503,
      headers: { "cache-control": "no-store" },
    });
  },
});
