import { type Context, Hono } from "hono";
import { createSignOuts } from "../controller/access/sign_outs.ts";
import type { Actions } from "../controller/actions/actions.ts";
import type { Views } from "../controller/views/views.ts";
import type { Clock } from "../lib/clock.ts";
import { isObject } from "../lib/json_object.ts";
import type { Logger } from "../lib/logger.ts";
import { ROUTES } from "../routes/mod.ts";
import { type Access, createAccess, type Entry } from "./access/access.ts";
import { auditForeign, challenge, isOpen } from "./access/entrance.ts";
import { createSignIn, SIGN_IN_PATHS } from "./access/sign_in.ts";
import { visitorOf } from "./access/visitor_of.ts";
import { byRole } from "./actions/by_role.ts";
import { respondAction } from "./actions/respond_action.ts";
import { createAddresses } from "./addresses.ts";
import { respondApi } from "./api.ts";
import { type Assets, buildAssets, NO_ASSETS } from "./assets.ts";
import { createChangeStream } from "./change_stream.ts";
import type { ActionRoute, Route } from "./define.ts";
import type { WebEnv } from "./env.ts";
import { guard, refuseMethod } from "./guard.ts";
import { finish } from "./headers.ts";
import { documentOf } from "./openapi.ts";
import { respondAbsent, respondFailed, respondPage } from "./pages.ts";
import type { Readiness, RouteContext } from "./route_context.ts";
import type { Standby } from "./standby.ts";
import { type Webhook, WEBHOOK_PATH } from "./webhook.ts";

/** What the pages and the API are made of. */
export interface WebDeps {
  readonly views: Views;
  /** Answers reads in place of this process, where another leads. */
  readonly standby?: Standby;
  /** Without it every action is refused: there is nothing to act on. */
  readonly actions?: Actions;
  /** Knows who asks; without it everybody on this machine is admin. */
  readonly access?: Access;
  /** Takes Gitea's hints; without it there is no such address. */
  readonly webhook?: Webhook;
  /** Prometheus text. */
  readonly metricsText: () => Promise<string>;
  readonly readiness: () => Readiness;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly version: string;
  /** Allowed `Host` values: a name allows every port, `name:port` just that one. */
  readonly hosts: readonly string[];
  /** Scripts and styles; built by esbuild at once when not given. */
  readonly assets?: Assets | Promise<Assets>;
}

/** The dashboard and the JSON API as a function. */
export interface Web extends AsyncDisposable {
  /** Answers a request; never rejects. */
  fetch(request: Request, info?: unknown): Response | Promise<Response>;
}

/**
 * Makes the dashboard: pages, `/api/v1`, event stream, probes and metrics. README.md beside this file
 * draws the way of a request. Dispose it to end every
 * event stream; it follows the views until then.
 */
export function createWeb(deps: WebDeps): Web {
  const { views, clock, logger } = deps;
  const changes = createChangeStream({ views, clock });
  const stop = new AbortController();
  // Pages without script or style are better than none.
  const assets = Promise.resolve(deps.assets ?? buildAssets(stop.signal)).catch(
    (error: unknown) => {
      if (stop.signal.aborted) return NO_ASSETS;
      logger.error("assets build failed", { component: "web", error });
      return NO_ASSETS;
    },
  );
  const actions = byRole(deps.actions ?? NO_ACTIONS);
  const access = deps.access ??
    createAccess({
      rules: OPEN,
      identities: null,
      signOuts: createSignOuts({ clock, logger }),
      secrets: null,
      publicUrl: null,
      clock,
    });
  const document = lazily(() => documentOf(Object.values(ROUTES), deps.version));
  const contextOf = (c: Context<WebEnv>): RouteContext => ({
    views,
    actions,
    ...visitorOf(c.get("entry")),
    peer: c.env.peer,
    signal: stop.signal,
    now: clock.now(),
    url: new URL(c.req.url),
    method: c.req.method,
    headers: c.req.raw.headers,
    requestId: c.get("requestId"),
    lastEventId: changes.lastEventId,
    openStream: changes.open,
    param: (name) => c.req.param(name) ?? "",
    readiness: deps.readiness,
    metricsText: deps.metricsText,
    document,
  });
  const site = { version: deps.version, assets, clock };
  const signIn = createSignIn({ access, site, logger });

  /** Sign-in itself, and whom nobody knows; each replica does that for itself. */
  const enterOrRefuse = async (c: Context<WebEnv>, entry: Entry) => {
    const context = contextOf(c);
    const { pathname } = context.url;
    if (Object.hasOwn(SIGN_IN_PATHS, pathname)) return await signIn(c, context);
    return entry.kind === "known" || isOpen(pathname)
      ? undefined
      : challenge(context, entry, access);
  };

  const app = new Hono<WebEnv>();
  const { webhook } = deps;
  if (webhook !== undefined) {
    // Before every guard: it is proven by its signature, and asks for us by any name.
    app.all(WEBHOOK_PATH, async (c) => {
      c.set("requestId", crypto.randomUUID());
      c.set("nonce", null);
      c.res = await webhook.respond(c.req.raw, c.get("requestId"));
      finish(c);
      return c.res;
    });
  }
  app.use(async (c, next) => {
    c.set("requestId", crypto.randomUUID());
    c.set("nonce", null);
    const refused = guard(c.req.raw, {
      hosts: deps.hosts,
      requestId: c.get("requestId"),
      allow: addresses.methods(c.req.path),
    });
    const entry = access.enter(c.req.raw.headers, c.env.peer);
    c.set("entry", entry);
    if (refused !== undefined) {
      const context = contextOf(c);
      auditForeign(context, {
        named: addresses.action(context.url.pathname),
        entry,
        response: refused,
        attempts: access.attempts,
      });
    }
    const early = refused ?? await enterOrRefuse(c, entry);
    if (early !== undefined) {
      c.res = early;
      finish(c);
      return;
    }
    // The leader's own answer, with its own policy.
    const passed = await deps.standby?.forward(c.req.raw);
    if (passed !== undefined) {
      c.res = passed;
      return;
    }
    await next();
    finish(c);
  });
  app.get("/assets/:name", async (c) => {
    return (await assets).respond(c.req.param("name")) ?? respondAbsent(c, contextOf(c), site);
  });
  for (const route of Object.values(ROUTES)) {
    if (route.kind === "action") {
      app.post(route.path, (c) => respondAction(route, c, contextOf(c), site));
    } else app.get(route.path, (c) => respond(route, c, contextOf(c)));
  }
  app.notFound((c) =>
    c.req.method === "POST" || addresses.methods(c.req.path) === "POST"
      ? refuseMethod(c.req.method, {
        requestId: c.get("requestId"),
        allow: addresses.methods(c.req.path),
      })
      : respondAbsent(c, contextOf(c), site)
  );
  app.onError((error, c) => {
    logger.error("page failed", { component: "web", requestId: c.get("requestId"), error });
    return respondFailed(c, contextOf(c), site);
  });

  function respond(route: Exclude<Route, ActionRoute>, c: Context<WebEnv>, context: RouteContext) {
    switch (route.kind) {
      case "page":
        return respondPage(route, c, context, site);
      case "api":
        return respondApi(route, c, context);
      case "raw":
      case "probe":
        return route.respond(context);
      default:
        return route satisfies never;
    }
  }
  return {
    fetch: (request, info) => app.fetch(request, { peer: peerOf(info) }),
    async [Symbol.asyncDispose]() {
      stop.abort();
      await changes[Symbol.asyncDispose]();
      await assets;
    },
  };
}

const addresses = createAddresses(Object.values(ROUTES));

const NO_ACTIONS: Actions = {
  act: () => Promise.resolve({ kind: "unavailable", detail: "Ask the leader: nothing acts here" }),
  preview: () => undefined,
  tagOf: () => null,
  refused() {},
};

const OPEN = { tokens: [], oidc: null };

/** The address of a connection, of what `Deno.serve` tells of it; IPv4 as such on a socket of both. */
function peerOf(info: unknown): string {
  const address = isObject(info) ? info.remoteAddr : undefined;
  return isObject(address) ? String(address.hostname).replace(/^::ffff:(?=[0-9.]+$)/, "") : "";
}

function lazily<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}
