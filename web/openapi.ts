import { createRoute, OpenAPIHono, z } from "@hono/zod-openapi";
import { SESSION_COOKIE } from "./access/session_cookie.ts";
import type { ActionRoute, ApiRoute, Route } from "./define.ts";
import { operationSchema, problemSchema, statusSchema } from "./schemas.ts";
import { actionHeaders, conflictSchema } from "./actions/schemas.ts";

/** The OpenAPI 3.1 document of the API routes, made of the schemas of their queries and answers. */
export function documentOf(routes: readonly Route[], version: string): unknown {
  const app = new OpenAPIHono();
  for (const route of routes) {
    if (route.kind === "api") app.openAPIRegistry.registerPath(describe(route));
    if (route.kind === "action" && !route.form) {
      app.openAPIRegistry.registerPath(describeAction(route));
    }
  }
  app.openAPIRegistry.registerPath(createRoute({
    method: "get",
    path: "/api/v1/events",
    summary: "Changes as Server-Sent Events",
    description: "A `snapshot` first, or what came after `Last-Event-ID` (`?last=`); then " +
      "`assignment`, `executor`, `backend`, `leader`, `operation`; every 5 s `status`, without an id. " +
      "Data: `{at, old, new}`.",
    responses: {
      200: { description: "The stream", content: { "text/event-stream": { schema: {} } } },
      401: { description: "Nobody is known to ask", content: PROBLEM },
      429: { description: "Too many wrong tokens", content: PROBLEM },
      503: { description: "No more viewers are taken", content: PROBLEM },
    },
  }));
  app.openAPIRegistry.registerComponent("securitySchemes", "token", {
    type: "http",
    scheme: "bearer",
    description: "A token of ADMIN_TOKENS; needed where sign-in is configured",
  });
  app.openAPIRegistry.registerComponent("securitySchemes", "session", {
    type: "apiKey",
    in: "cookie",
    name: SESSION_COOKIE,
    description:
      `With https \`__Host-${SESSION_COOKIE}\`. A POST also carries the proof in \`X-CSRF-Token\``,
  });
  const document = app.getOpenAPI31Document({
    openapi: "3.1.0",
    security: [{ token: [] }, { session: [] }, {}],
    info: {
      title: "gitea-dynamic-runner",
      version,
      description:
        "Times are RFC 3339 UTC, durations milliseconds with `Ms` in the name; null means " +
        "unknown. Errors are `application/problem+json` (RFC 9457).",
      license: { name: "Apache-2.0" },
    },
  });
  return { ...document, components: { ...document.components, schemas: correct(document) } };
}

/**
 * The library takes a member that may be absent, but is never `undefined`, for a required one. What
 * this version does not know may be absent from an older one's answer.
 */
function correct({ components }: ReturnType<OpenAPIHono["getOpenAPI31Document"]>) {
  const absent = Object.entries(statusSchema.shape)
    .filter(([, member]) => member instanceof z.ZodExactOptional).map(([name]) => name);
  const { Status, ...others } = components?.schemas ?? {};
  if (Status === undefined || !("required" in Status)) return components?.schemas;
  const required = Status.required?.filter((name) => !absent.includes(name)) ?? [];
  return { ...others, Status: { ...Status, required } };
}

const PROBLEM = { "application/problem+json": { schema: problemSchema } };
const CONFLICT = { "application/problem+json": { schema: conflictSchema } };

function describeAction(route: ActionRoute) {
  return createRoute({
    method: "post",
    path: route.path.replace(/:(\w+)/g, "{$1}"),
    summary: route.summary,
    request: {
      params: route.params,
      headers: actionHeaders,
      body: { required: true, content: { "application/json": { schema: route.body } } },
    },
    responses: {
      200: { description: "Done", content: { "application/json": { schema: operationSchema } } },
      202: {
        description: "Begun; `Location` is the operation, which tells how far it is",
        content: { "application/json": { schema: operationSchema } },
      },
      400: { description: "The body or a header does not fit", content: PROBLEM },
      401: { description: "Nobody is known to ask", content: PROBLEM },
      403: {
        description: "The role, or the session's proof, or the site that asks does not suffice",
        content: PROBLEM,
      },
      404: { description: "No such target", content: PROBLEM },
      408: { description: "The body did not come in time", content: PROBLEM },
      409: { description: "It does not fit to how things stand: `current`", content: CONFLICT },
      412: { description: "It has changed since you looked: `current`", content: CONFLICT },
      413: { description: "The body is too long", content: PROBLEM },
      415: { description: "The body is no JSON", content: PROBLEM },
      421: { description: "The host is not one of ours", content: PROBLEM },
      422: { description: "The `Idempotency-Key` was used for something else", content: PROBLEM },
      429: { description: "Too many wrong tokens", content: PROBLEM },
      503: { description: "Not now, or not here: nothing was done", content: PROBLEM },
    },
  });
}

function describe(route: ApiRoute) {
  const problems = {
    400: { description: "The query does not fit", content: PROBLEM },
    401: { description: "Nobody is known to ask", content: PROBLEM },
    403: { description: "Another site's script asked", content: PROBLEM },
    429: { description: "Too many wrong tokens", content: PROBLEM },
    421: { description: "The host is not one of ours", content: PROBLEM },
    ...(route.absent === null ? {} : { 404: { description: route.absent, content: PROBLEM } }),
  };
  return createRoute({
    method: "get",
    path: route.path.replace(/:(\w+)/g, "{$1}"),
    summary: route.summary,
    request: { params: route.params, query: route.query },
    responses: {
      200: { description: "OK", content: { "application/json": { schema: route.response } } },
      ...problems,
    },
  });
}
