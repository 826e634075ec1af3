import type { Context } from "hono";
import type { ActionOutcome } from "../controller/actions.ts";
import type { ActionRoute, RouteContext } from "./define.ts";
import type { WebEnv } from "./env.ts";
import { respondAbsent, respondFailed, type Site } from "./pages.ts";
import { problem } from "./problem.ts";

/** Bodies of actions are a note and a choice or two. */
const MAX_BODY = 16_384;

/** Carries out a POST: JSON for machines, or from a form, then 303 to a page that shows the outcome. */
export async function respondAction(
  route: ActionRoute,
  c: Context<WebEnv>,
  context: RouteContext,
  site: Site,
): Promise<Response> {
  const { requestId } = context;
  const wanted = route.form ? "application/x-www-form-urlencoded" : "application/json";
  const type = (c.req.header("content-type") ?? "").split(";", 1)[0]?.trim().toLowerCase();
  if (type !== wanted) {
    return problem(415, { detail: `Send the body as ${wanted}`, requestId });
  }
  const text = await readText(c.req.raw);
  if (text === undefined) {
    return problem(413, { detail: `Send at most ${MAX_BODY} bytes`, requestId });
  }
  const body = route.form ? Object.fromEntries(new URLSearchParams(text)) : parseJson(text);
  const answer = await route.act(context, { params: c.req.param(), body });
  if (answer.kind === "bad") return problem(400, { detail: answer.detail, requestId });
  return route.form
    ? respondForm(answer, c, context, { site, page: route.page(c.req.param()) })
    : respondJson(answer, requestId);
}

function respondJson(outcome: ActionOutcome, requestId: string): Response {
  switch (outcome.kind) {
    case "done":
      return Response.json(outcome.operation, { headers: { "cache-control": "no-store" } });
    case "absent":
      return problem(404, { detail: outcome.detail, requestId });
    case "conflict":
      return problem(409, {
        detail: outcome.detail,
        requestId,
        extra: { current: outcome.current },
      });
    case "unavailable":
      return problem(503, { detail: outcome.detail, requestId, headers: { "retry-after": "5" } });
    default:
      return outcome satisfies never;
  }
}

function respondForm(
  outcome: ActionOutcome,
  c: Context<WebEnv>,
  context: RouteContext,
  { site, page }: { readonly site: Site; readonly page: string },
): Promise<Response> | Response {
  switch (outcome.kind) {
    case "done":
    case "conflict": // The page shows how things stand.
      return new Response(null, {
        status: 303,
        headers: { location: page, "cache-control": "no-store" },
      });
    case "absent":
      return respondAbsent(c, context, site, outcome.detail);
    case "unavailable":
      return respondFailed(c, context, site, 503);
    default:
      return outcome satisfies never;
  }
}

/** The body's text; undefined when it is too long. */
async function readText(request: Request): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.length;
    if (size > MAX_BODY) return undefined;
    chunks.push(chunk);
  }
  return await new Blob(chunks as BlobPart[]).text();
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // The schema says what was expected.
  }
}
