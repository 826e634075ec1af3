import type { Context } from "hono";
import { faultOfRole, roleFor } from "../../controller/access/rules.ts";
import type { ActionOutcome } from "../../controller/actions/actions.ts";
import { isObject } from "../../lib/json_object.ts";
import { isProof } from "../access/sessions.ts";
import type { ActionRoute, BadInput } from "../define.ts";
import type { WebEnv } from "../env.ts";
import { respondAbsent, respondRefused, type Site } from "../pages.ts";
import { problem } from "../problem.ts";
import { mediaTypeOf, readBody } from "../read_body.ts";
import { seeOther } from "../redirect.ts";
import type { RouteContext } from "../route_context.ts";
import { faultOfHeaders, requestOf } from "./request.ts";

/** Bodies of actions are a note and a choice or two. */
const MAX_BODY = 16_384;
/** Where a script of our own pages puts what forms have in the field `csrf`. */
const PROOF_HEADER = "x-csrf-token";
const UNPROVEN = "Act on the page itself, opened anew: the request does not carry this session's " +
  `proof, in the field "csrf" or the header "${PROOF_HEADER}"`;

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
  const named = route.named?.(c.req.param());
  const forbid = (detail: string) => {
    if (named !== undefined) {
      context.actions.refused(named, requestOf(context, { note: "" }), detail);
    }
    return route.form
      ? respondRefused(c, context, site, { status: 403, detail, back: "/" })
      : problem(403, { detail, requestId });
  };
  // Before its body is looked at: who may not act learns nothing from what is wrong with it.
  const needed = named === undefined ? "operator" : roleFor(named);
  const lacking = faultOfRole(context.actor.role, needed);
  if (lacking !== null) return forbid(lacking);
  const wanted = route.form ? "application/x-www-form-urlencoded" : "application/json";
  if (mediaTypeOf(context.headers) !== wanted) {
    return problem(415, { detail: `Send the body as ${wanted}`, requestId });
  }
  const read = await readBody(c.req.raw, { maxBytes: MAX_BODY, clock: site.clock, requestId });
  if (read.kind === "refused") return read.response;
  const text = new TextDecoder().decode(read.bytes);
  const body = route.form ? Object.fromEntries(new URLSearchParams(text)) : parseJson(text);
  if (context.proof !== null) {
    const given = route.form && isObject(body) ? body.csrf : context.headers.get(PROOF_HEADER);
    if (!isProof(given, context.proof)) return forbid(UNPROVEN);
  }
  const answer = await route.act(context, { params: c.req.param(), body });
  if (answer.kind === "seen") return seeOther(route.page(c.req.param()));
  if (route.form) return respondForm(answer, c, context, { site, route });
  return answer.kind === "bad"
    ? problem(400, { detail: answer.detail, requestId })
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
    case "forbidden":
      return problem(403, { detail: outcome.detail, requestId });
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
  outcome: ActionOutcome | BadInput,
  c: Context<WebEnv>,
  context: RouteContext,
  { site, route }: { readonly site: Site; readonly route: ActionRoute },
): Promise<Response> | Response {
  const refuse = (status: number, detail: string, current: unknown = null) => {
    const params = c.req.param();
    // A path that fits to nothing has no page of its own to lead back to.
    const back = outcome.kind === "bad" ? "/" : route.page(params);
    return respondRefused(c, context, site, { status, detail, current, back });
  };
  switch (outcome.kind) {
    case "bad":
      return refuse(400, outcome.detail);
    case "done":
      return seeOther(`/operations/${outcome.operation.id}`);
    case "conflict":
    case "stale":
      return outcome.operation === undefined
        ? refuse(outcome.kind === "stale" ? 412 : 409, outcome.detail, outcome.current)
        : seeOther(`/operations/${outcome.operation.id}`);
    case "forbidden":
      return refuse(403, outcome.detail);
    case "absent":
      return respondAbsent(c, context, site, outcome.detail);
    case "differs":
      return refuse(422, outcome.detail);
    case "unavailable":
      return refuse(503, outcome.detail);
    default:
      return outcome satisfies never;
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // The schema says what was expected.
  }
}
