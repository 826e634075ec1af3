import type { Context } from "hono";
import type { ApiRoute } from "./define.ts";
import type { RouteContext } from "./route_context.ts";
import { problem } from "./problem.ts";
import type { WebEnv } from "./env.ts";

/** Answers one GET of the API: JSON, 304 for a known tag, or a problem. */
export async function respondApi(
  route: ApiRoute,
  c: Context<WebEnv>,
  context: RouteContext,
): Promise<Response> {
  const { requestId } = context;
  const answer = await route.load(context, { params: c.req.param(), query: c.req.query() });
  switch (answer.kind) {
    case "bad":
      return problem(400, { detail: answer.detail, requestId });
    case "absent":
      return problem(404, { detail: answer.detail, requestId });
    case "found": {
      const { body, tagged } = answer.data;
      const headers = new Headers({
        "content-type": "application/json",
        "cache-control": tagged === null ? "no-store" : "no-cache",
        ...answer.headers,
      });
      if (tagged !== null) {
        const etag = await tagOf(tagged);
        headers.set("etag", etag);
        if (isKnown(c.req.header("if-none-match"), etag)) {
          return new Response(null, { status: 304, headers });
        }
      }
      return new Response(JSON.stringify(body), { headers });
    }
    default:
      return answer satisfies never;
  }
}

/** A weak tag (RFC 9110 8.8.1): same tag, same meaning, not the same bytes. */
async function tagOf(value: unknown): Promise<string> {
  const bytes = new TextEncoder().encode(JSON.stringify(value));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return `W/"${digest.slice(0, 12).toHex()}"`;
}

/** Weak comparison, as If-None-Match wants it. */
function isKnown(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  const opaque = (tag: string) => tag.trim().replace(/^W\//, "");
  return header.trim() === "*" || header.split(",").some((tag) => opaque(tag) === opaque(etag));
}
