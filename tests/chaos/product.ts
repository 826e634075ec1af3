/**
 * The product with light executors in place of processes: `wiring/` as `main.ts` joins it, with its own
 * nats-server child, trust domain, facade and pages, but for two parts: the backend makes executors at
 * the host `--executors=URL`, and NATS is met through the proxy `--nats=URL`, so that the connection
 * can be cut. Settings come from the environment as always; no other is read.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createLogger } from "../../clients/logtape/logger.ts";
import { parseConfig } from "../../controller/config/parse.ts";
import { formatFaults } from "../../controller/config/report.ts";
import { startTrustDomain } from "../../embedded/trust_domain.ts";
import { systemClock as clock } from "../../lib/clock.ts";
import { startController } from "../../wiring/controller.ts";
import { openPages } from "../../wiring/pages.ts";
import { createSources } from "../../wiring/sources.ts";
import { createSupplies } from "../../wiring/supplies.ts";
import { createLightBackend } from "./light_backend.ts";

const VERSION = "chaos";

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { executors: { type: "string" }, nats: { type: "string" } },
  });
  const { executors, nats: natsUrl } = values;
  if (executors === undefined || natsUrl === undefined) {
    throw new TypeError("Start the product: give --executors and --nats");
  }
  const env = Deno.env.toObject();
  const parsed = parseConfig(env, {
    readFile: Deno.readTextFileSync,
    hostname: "chaos",
    isRoot: false,
    isTerminal: false,
  });
  if (parsed.kind === "faults") throw new TypeError(formatFaults(parsed.faults));
  const { config } = parsed;
  const logger = createLogger(config.log);
  const stop = new AbortController();
  Deno.addSignalListener("SIGTERM", () => stop.abort(new DOMException("SIGTERM", "AbortError")));
  const { signal } = stop;

  await using stack = new AsyncDisposableStack();
  const sources = createSources(clock, { self: config.hostname, mode: config.leaderElection });
  const pages = stack.use(openPages({ config, version: VERSION, sources, clock, logger }));
  logger.info("dashboard is up", { url: pages.url });
  const { recorder, views, actions, hints, signOuts } = pages;
  const context = {
    version: VERSION,
    env,
    isRoot: false,
    clock,
    random: Math.random,
    logger,
    announce() {},
  };
  const supplies = await createSupplies(config, { ...context, stack });
  const { trustDomain } = config.spiffe;
  const spiffeId = `spiffe://${trustDomain}/gitea-dynamic-runner/facade`;
  const [nats, gitea] = await Promise.all([supplies.nats(signal), supplies.gitea(signal)]);
  const identity = stack.use(
    await startTrustDomain({
      directory: join(config.stateDir, "trust"),
      trustDomain,
      clock,
      logger,
    }),
  );
  const controller = stack.use(
    await startController(
      {
        gitea,
        nats: { ...nats, servers: [natsUrl] },
        capabilityKeys: await supplies.capabilityKeys(),
        trustDomain,
        endpointSocket: await identity.endpointFor(spiffeId),
        facade: {
          hostname: config.facade.listen.hostname,
          port: await supplies.facadePort(),
          url: config.facade.url,
          spiffeId,
        },
        backends: () =>
          Promise.resolve([createLightBackend({ url: executors, identity, clock, logger })]),
      },
      { ...context, config, recorder, views, actions, hints, signOuts, sources },
      signal,
    ),
  );
  await controller.run(signal);
}

if (import.meta.main) {
  await main();
  // Its signal listener would keep it.
  Deno.exit(0);
}
