import type { Clock } from "../lib/clock.ts";
import { errorText } from "../lib/error_text.ts";
import type { Logger } from "../lib/logger.ts";
import { EXIT } from "./exit_codes.ts";
import { GateEnd } from "./gate_end.ts";
import { prepareTrust } from "./gate_trust.ts";
import { createGiteaRoute } from "./gitea_route.ts";
import type { Launch } from "./launch.ts";
import { openGateProxy } from "./proxy.ts";
import { type Runner, startRunner } from "./runner.ts";
import { runnerAddress, runnerConfig, runnerEnvironment, upstreamProxy } from "./runner_config.ts";
import type { RunnerService } from "./runner_service.ts";

/** What the runner is started with. */
export interface RunnerStartDeps {
  readonly service: RunnerService;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The container's environment. */
  readonly env: Readonly<Record<string, string>>;
  /** An empty folder of the gate. */
  readonly work: string;
  /** How long the runner may let its job go on after SIGTERM, ms. */
  readonly shutdownMs: number;
  /** Ends calls that the proxy holds. */
  readonly signal: AbortSignal;
}

/** Everything that the runner needs to be started. Disposing closes its proxy. */
export interface RunnerStart extends AsyncDisposable {
  /** Starts it. Throws a {@link GateEnd} when there is no such program. */
  start(): Runner;
}

/** Opens the proxy and writes the runner's files: all that needs no identity. */
export async function prepareRunner(launch: Launch, deps: RunnerStartDeps): Promise<RunnerStart> {
  const { env, work, logger, clock } = deps;
  await using stack = new AsyncDisposableStack();
  // As the runner will spell it.
  const route = createGiteaRoute(runnerAddress(launch.giteaUrl));
  const trust = await prepareTrust(route, { work, now: clock.now() });
  const proxy = stack.use(
    await openGateProxy({
      service: deps.service,
      route,
      logger,
      signal: deps.signal,
      upstreamProxy: (authority) => upstreamProxy(env, authority),
      ...(trust.certificate === undefined ? {} : { certificate: trust.certificate }),
    }),
  );
  const setup = {
    env,
    work,
    proxyUrl: proxy.url,
    secure: route.secure,
    certificateDir: trust.certificateDir,
    shutdownMs: deps.shutdownMs,
  };
  const config = `${work}/config.yaml`;
  await Deno.writeTextFile(config, runnerConfig(setup), { mode: 0o600 });
  await Deno.mkdir(`${work}/home`, { mode: 0o700 });
  const environment = runnerEnvironment(setup);
  const { runner: command } = launch;
  const opened = stack.move();
  return {
    start() {
      try {
        return startRunner({ command, config, env: environment, cwd: work, clock, logger });
      } catch (error) {
        throw new GateEnd(EXIT.runnerStart, `Start runner "${command[0]}": ${errorText(error)}`);
      }
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}
