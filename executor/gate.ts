import type { SvidSource } from "../clients/spiffe/workload_api.ts";
import { taskIdOf } from "../controller/model/ids.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { randomHex } from "../lib/random_hex.ts";
import { createTaskGroup } from "../lib/task_group.ts";
import { EXIT, type Outcome } from "./exit_codes.ts";
import { createFacadeApi } from "./facade_api.ts";
import { createFacadeLink } from "./facade_link.ts";
import { GateEnd, outcomeOf } from "./gate_end.ts";
import { GATE_LIMITS, type GateLimits } from "./gate_limits.ts";
import { prepareTrust } from "./gate_trust.ts";
import { createGiteaRoute } from "./gitea_route.ts";
import { createHeartbeat } from "./heartbeat.ts";
import { errorText } from "./json_logger.ts";
import type { Launch } from "./launch.ts";
import { createOutbox, type Outbox, type OutboxEnd } from "./outbox.ts";
import { openGateProxy } from "./proxy.ts";
import { createRowSpool } from "./row_spool.ts";
import { type Runner, startRunner } from "./runner.ts";
import {
  runnerAddress,
  runnerConfig,
  runnerEnvironment,
  runnerFile,
  upstreamProxy,
} from "./runner_config.ts";
import { createRunnerService, type RunnerService } from "./runner_service.ts";
import { watchStop } from "./stop.ts";

/** What the gate works with. */
export interface GateDeps {
  readonly svids: Pick<SvidSource, "current" | "ready">;
  readonly clock: Clock;
  readonly random: () => number;
  readonly logger: Logger;
  /** The container's environment. */
  readonly env: Readonly<Record<string, string>>;
  /** An empty folder of ours. */
  readonly work: string;
  /** Aborts when somebody asks the executor to end; the reason is text for people. */
  readonly stop: AbortSignal;
  readonly limits?: Partial<GateLimits>;
}

const ORPHANS_MS = 2500;

/**
 * Runs one job and resolves to how it ended; never rejects.
 *
 *   SVID --> facade answers --> runner started --> task handed over --> final state stored
 *     |            |                  |                  |                      |
 *   identity   facadeSilent,     runnerStart,      noFinalState     delivered, undelivered,
 *              claimRefused        noTask                            reportsRefused
 *
 * `deps.stop`, at any time: the facade is told first, then the runner gets SIGTERM; it is killed after
 * three quarters of the grace period, and what is left of that is for the delivery.
 */
export async function runGate(launch: Launch, deps: GateDeps): Promise<Outcome> {
  const { clock, logger } = deps;
  const limits = { ...GATE_LIMITS, ...deps.limits };
  const started = clock.monotonic();
  const phase = (name: string) => {
    logger.info("gate phase", { phase: name, ms: Math.round(clock.monotonic() - started) });
  };
  await using stack = new AsyncDisposableStack();
  const link = stack.use(createFacadeLink(deps.svids, {
    url: launch.facadeUrl,
    spiffeId: launch.facadeSpiffeId,
    assignment: launch.assignment,
    capability: launch.capability,
    gate: randomHex(16),
  }));
  const facade = createFacadeApi(link, clock);
  const spool = stack.use(createRowSpool({ file: `${deps.work}/log-rows` }));
  const group = stack.use(createTaskGroup(logger));
  const early = Promise.withResolvers<never>();
  early.promise.catch(() => {});
  let handedOver = false;
  let version = "";
  const taskId = BigInt(taskIdOf(launch.assignment) ?? "0");
  const outbox = createOutbox({
    ...deps,
    taskId,
    sender: facade,
    spool,
    runnerVersion: () => version,
    refusalMs: limits.refusalMs,
  });
  const nonce = randomHex(32);
  const service = createRunnerService({
    ...deps,
    facade,
    outbox,
    uuid: launch.assignment,
    nonce,
    taskId,
    onDeclare(said) {
      version = said;
      phase("declare");
    },
    onTask(task) {
      if (task === "handed_over") {
        handedOver = true;
        phase("task");
      } else early.reject(new GateEnd(EXIT.claimRefused, `claim refused: ${task.refused}`));
    },
  });
  const heartbeat = createHeartbeat({ ...deps, facade, limits, outbox, end: early.reject });
  const stop = stack.use(watchStop({ ...deps, facade, outbox, graceMs: launch.graceMs }));

  const meet = async () => {
    using limit = clock.timeout(limits.identityMs);
    await deps.svids.ready(AbortSignal.any([stop.asked, limit.signal])).catch((error) => {
      stop.throwIfAsked();
      throw new GateEnd(EXIT.identity, `no SVID for "${launch.spiffeId}": ${errorText(error)}`);
    });
    phase("svid");
    await heartbeat.meet(stop.asked);
    stop.throwIfAsked();
    phase("facade");
  };
  const run = async (): Promise<Outcome> => {
    const prepared = prepare(launch, deps, {
      service,
      stack,
      signal: group.signal,
      stopMs: stop.shutdownMs,
    });
    const [start] = await Promise.all([prepared.finally(() => phase("prepared")), meet()]);
    await using runner = start();
    phase("runner");
    await runner.register(runnerFile({
      uuid: launch.assignment,
      nonce,
      address: runnerAddress(launch.giteaUrl),
    }));
    group.spawn("heartbeat", heartbeat.run);
    group.spawn("stop", (signal) => stop.run(runner, signal));
    const gone = new AbortController();
    const delivery = deliver(outbox, AbortSignal.any([group.signal, stop.over, gone.signal]));
    group.spawn("linger", (signal) => endLingering(runner, delivery, { clock, limits, signal }));
    group.spawn("orphans", (signal) => endOrphans(runner, { clock, outbox, signal }));
    const end = await Promise.race([runner.ended, early.promise]);
    logger.info("runner ended", { ...end, ...outbox.waiting });
    outbox.close();
    group.spawn("delivery limit", async (signal) => {
      await clock.sleep(limits.deliveryMs, signal);
      gone.abort(new DOMException("The time for delivery is over", "TimeoutError"));
    });
    return outcomeOf({
      runner: end,
      delivery: await delivery,
      handedOver: handedOver || outbox.started,
      finalStored: outbox.finalStored,
      stopped: stop.why,
    });
  };

  const outcome = await run().catch((error): Outcome => {
    if (error instanceof GateEnd) return error.outcome;
    return { code: EXIT.internal, detail: `the gate failed: ${errorText(error)}` };
  });
  phase("ended");
  await heartbeat.exit(outcome, { claimed: handedOver, over: stop.over });
  return outcome;
}

/** Everything that needs no identity; resolves to what starts the runner. */
async function prepare(
  launch: Launch,
  deps: GateDeps,
  parts: {
    readonly service: RunnerService;
    readonly stack: AsyncDisposableStack;
    readonly signal: AbortSignal;
    readonly stopMs: number;
  },
): Promise<() => Runner> {
  const { env, work, logger } = deps;
  // As the runner will spell it.
  const route = createGiteaRoute(runnerAddress(launch.giteaUrl));
  const trust = await prepareTrust(route, { work, now: deps.clock.now() });
  const proxy = parts.stack.use(
    await openGateProxy({
      service: parts.service,
      route,
      logger,
      signal: parts.signal,
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
    shutdownMs: parts.stopMs,
  };
  const config = `${work}/config.yaml`;
  await Deno.writeTextFile(config, runnerConfig(setup), { mode: 0o600 });
  await Deno.mkdir(`${work}/home`, { mode: 0o700 });
  return () => {
    try {
      const environment = runnerEnvironment(setup);
      const { runner: command } = launch;
      return startRunner({ ...deps, command, config, env: environment, cwd: work });
    } catch (error) {
      throw new GateEnd(
        EXIT.runnerStart,
        `Start runner "${launch.runner[0]}": ${errorText(error)}`,
      );
    }
  };
}

/** The outbox's end; a delivery that was given up is an end, too. */
async function deliver(
  outbox: Outbox,
  signal: AbortSignal,
): Promise<OutboxEnd | { readonly kind: "given_up"; readonly error: unknown }> {
  try {
    return await outbox.run(signal);
  } catch (error) {
    return { kind: "given_up", error };
  }
}

/** Kills a runner that stays although nothing more can come of it. */
async function endLingering(
  runner: Runner,
  delivery: Promise<{ readonly kind: string }>,
  options: { readonly clock: Clock; readonly limits: GateLimits; readonly signal: AbortSignal },
): Promise<void> {
  await delivery;
  if (options.signal.aborted) return;
  await options.clock.sleep(options.limits.lingerMs, options.signal);
  runner.kill();
}

/** A cancelled job must not wait for what its steps have started: the runner alone would. */
async function endOrphans(
  runner: Runner,
  options: { readonly clock: Clock; readonly outbox: Outbox; readonly signal: AbortSignal },
): Promise<void> {
  while (true) {
    await options.clock.sleep(ORPHANS_MS, options.signal);
    if (options.outbox.cancelled) await runner.endOrphans();
  }
}
