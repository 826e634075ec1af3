import { createRoute, OpenAPIHono } from "@hono/zod-openapi";
import type { ActionRoute, ApiRoute, Route } from "./define.ts";
import { operationSchema, problemSchema } from "./schemas.ts";

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
      503: { description: "No more viewers are taken", content: PROBLEM },
    },
  }));
  return app.getOpenAPI31Document({
    openapi: "3.1.0",
    info: {
      title: "gitea-dynamic-runner",
      version,
      description:
        "Times are RFC 3339 UTC, durations milliseconds with `Ms` in the name; null means " +
        "unknown. Errors are `application/problem+json` (RFC 9457).",
      license: { name: "Apache-2.0" },
    },
  });
}

const PROBLEM = { "application/problem+json": { schema: problemSchema } };

function describeAction(route: ActionRoute) {
  return createRoute({
    method: "post",
    path: route.path.replace(/:(\w+)/g, "{$1}"),
    summary: route.summary,
    request: {
      params: route.params,
      body: { required: true, content: { "application/json": { schema: route.body } } },
    },
    responses: {
      200: { description: "Done", content: { "application/json": { schema: operationSchema } } },
      400: { description: "The body does not fit", content: PROBLEM },
      403: { description: "Another site asked", content: PROBLEM },
      404: { description: "No such target", content: PROBLEM },
      409: { description: "It does not fit to how things stand: `current`", content: PROBLEM },
      503: { description: "Not now, or not here", content: PROBLEM },
    },
  });
}

function describe(route: ApiRoute) {
  const problems = {
    400: { description: "The query does not fit", content: PROBLEM },
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
