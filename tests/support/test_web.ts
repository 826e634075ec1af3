import { NO_ASSETS } from "../../web/assets.ts";
import { createWeb, type Web, type WebDeps } from "../../web/server.ts";
import { silentLogger } from "../../lib/logger.ts";

/** Pages and API of a leader that is ready, without scripts; `deps` wins where it says more. */
export function createTestWeb(deps: Pick<WebDeps, "views" | "clock"> & Partial<WebDeps>): Web {
  return createWeb({
    logger: silentLogger,
    version: "0.1.0",
    hosts: ["localhost"],
    metricsText: () => Promise.resolve(""),
    readiness: () => ({ ready: true, role: "leader", checks: [] }),
    assets: NO_ASSETS,
    ...deps,
  });
}
