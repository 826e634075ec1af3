import { defineRaw } from "../../../web/define.ts";
import { problem } from "../../../web/problem.ts";

const HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store, no-transform",
  "x-accel-buffering": "no",
};

/**
 * Server-Sent Events: `snapshot` first, unless `Last-Event-ID` (or `?last=`, for a browser that opens
 * its first stream) can be replayed; then `assignment`, `executor`, `backend`, `leader`, `operation`,
 * each with `{at, old, new}`; every 5 s `status`, without an id.
 */
export default defineRaw({
  path: "/api/v1/events",
  respond({ headers, url, method, openStream, requestId }) {
    // Nobody would read, nor end, the stream of a HEAD.
    if (method === "HEAD") return new Response(null, { headers: HEADERS });
    const stream = openStream(headers.get("last-event-id") ?? url.searchParams.get("last"));
    if (stream === undefined) {
      return problem(503, {
        detail: "Come back in 10 s: as many viewers as this replica takes are here already",
        requestId,
        headers: { "retry-after": "10" },
      });
    }
    return new Response(stream, { headers: HEADERS });
  },
});
