import type { Context } from "hono";
import type { ActionOutcome } from "../controller/actions.ts";
import { faultOfHeaders } from "./action_request.ts";
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
  const fault = faultOfHeaders(context.headers);
  if (fault !== null) return problem(400, { detail: fault, requestId });
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
  if (answer.kind === "seen") return leadTo(route.page(c.req.param()));
  return route.form
    ? respondForm(answer, c, context, { site, page: route.page(c.req.param()) })
    : respondJson(answer, requestId);
}

function respondJson(outcome: ActionOutcome, requestId: string): Response {
  switch (outcome.kind) {
    case "done": {
      const { operation } = outcome;
      const running = operation.state === "running";
      return Response.json(operation, {
        status: running ? 202 : 200,
        headers: {
          "cache-control": "no-store",
          ...running ? { location: `/api/v1/operations/${operation.id}` } : {},
        },
      });
    }
    case "absent":
      return problem(404, { detail: outcome.detail, requestId });
    case "conflict":
    case "stale": {
      const { detail, current, operation } = outcome;
      return problem(outcome.kind === "stale" ? 412 : 409, {
        detail,
        requestId,
        extra: { current, operation: operation?.id ?? null },
      });
    }
    case "differs":
      return problem(422, { detail: outcome.detail, requestId });
    case "unavailable":
      return problem(503, { detail: outcome.detail, requestId, headers: { "retry-after": "5" } });
    default:
      return outcome satisfies never;
  }
}

/** What was done, or could not be, has a row of its own: the form leads there. */
function respondForm(
  outcome: ActionOutcome,
  c: Context<WebEnv>,
  context: RouteContext,
  { site, page }: { readonly site: Site; readonly page: string },
): Promise<Response> | Response {
  switch (outcome.kind) {
    case "done":
      return leadTo(`/operations/${outcome.operation.id}`);
    case "conflict":
    case "stale":
      return leadTo(outcome.operation === undefined ? page : `/operations/${outcome.operation.id}`);
    case "absent":
      return respondAbsent(c, context, site, outcome.detail);
    case "differs":
      return respondFailed(c, context, site, 422);
    case "unavailable":
      return respondFailed(c, context, site, 503);
    default:
      return outcome satisfies never;
  }
}

function leadTo(location: string): Response {
  return new Response(null, { status: 303, headers: { location, "cache-control": "no-store" } });
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
