import { Hono } from "hono";
import { HEALTH_ROUTES } from "../routes/mod.ts";
import type { WebEnv } from "./env.ts";
import { finish } from "./headers.ts";
import type { Web, WebDeps } from "./server.ts";

/** `/healthz`, `/readyz` and `/metrics` alone, for `HEALTH_LISTEN`; any host may ask (kubelet, scrapers). */
export function createProbes(
  deps: Pick<WebDeps, "metricsText" | "readiness" | "logger">,
): Pick<Web, "fetch"> {
  const app = new Hono<WebEnv>();
  app.use(async (c, next) => {
    c.set("requestId", crypto.randomUUID());
    c.set("nonce", null);
    await next();
    finish(c);
  });
  for (const route of HEALTH_ROUTES) {
    app.get(route.path, () => route.respond(deps));
  }
  app.onError((error, c) => {
    deps.logger.error("probe failed", { component: "web", error });
    return c.text("The probe failed; the log says why", 500);
  });
  return { fetch: (request) => app.fetch(request) };
}
