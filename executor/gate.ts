import type { SvidSource } from "../clients/spiffe/workload_api.ts";
import type { GatePhase } from "../controller/model/gate_phase.ts";
import type { Clock } from "../lib/clock.ts";
import { errorText } from "../lib/error_text.ts";
import type { Logger } from "../lib/logger.ts";
import { EXIT, type Outcome } from "./exit_codes.ts";
import { createGateCore, type GateCore } from "./gate_core.ts";
import { GateEnd, outcomeOf } from "./gate_end.ts";
import { GATE_LIMITS, type GateLimits } from "./gate_limits.ts";
import type { Launch } from "./launch.ts";
import { deliver } from "./outbox.ts";
import type { Runner } from "./runner.ts";
import { runnerAddress, runnerFile } from "./runner_config.ts";
import { prepareRunner } from "./runner_start.ts";
import { type StopWatch, watchStop } from "./stop.ts";

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
  const phases: { -readonly [P in GatePhase]?: number } = {};
  const phase = (name: GatePhase) => {
    const ms = Math.round(clock.monotonic() - started);
    phases[name] ??= ms;
    logger.info("gate phase", { phase: name, ms });
  };
  await using stack = new AsyncDisposableStack();
  const core = stack.use(createGateCore(launch, {
    svids: deps.svids,
    clock,
    logger,
    random: deps.random,
    limits,
    spoolFile: `${deps.work}/log-rows`,
    onDeclare: () => phase("declare"),
    onTask: () => phase("task"),
  }));
  const { facade, outbox } = core;
  const stop = stack.use(watchStop({ ...deps, facade, outbox, graceMs: launch.graceMs }));
  const run = async () => {
    const { service, group: { signal } } = core;
    const preparing = prepareRunner(launch, {
      ...deps,
      service,
      signal,
      shutdownMs: stop.shutdownMs,
    }).then((prepared) => stack.use(prepared)).finally(() => phase("prepared"));
    const [prepared] = await Promise.all([
      preparing,
      meetFacade(launch, { ...deps, core, stop, limits, phase }),
    ]);
    await using runner = prepared.start();
    phase("runner");
    return await runJob(launch, { ...deps, core, stop, limits, runner, phase });
  };
  const outcome = await run().catch((error): Outcome => {
    if (error instanceof GateEnd) return error.outcome;
    return { code: EXIT.internal, detail: `the gate failed: ${errorText(error)}` };
  });
  phase("ended");
  await core.heartbeat.exit(outcome, { claimed: core.handedOver, over: stop.over, phases });
  return outcome;
}

/** What the parts of {@link runGate} share. */
interface Gate {
  readonly core: GateCore;
  readonly stop: StopWatch;
  readonly limits: GateLimits;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Says what was reached now. */
interface Phased {
  phase(name: GatePhase): void;
}

/** Gets an SVID, then the facade's first answer. Throws {@link GateEnd} when either does not come. */
async function meetFacade(
  launch: Launch,
  gate: Gate & Pick<GateDeps, "svids"> & Phased,
): Promise<void> {
  const { core, stop, limits, clock, svids, phase } = gate;
  using limit = clock.timeout(limits.identityMs);
  await svids.ready(AbortSignal.any([stop.asked, limit.signal])).catch((error) => {
    stop.throwIfAsked();
    throw new GateEnd(EXIT.identity, `no SVID for "${launch.spiffeId}": ${errorText(error)}`);
  });
  phase("svid");
  await core.heartbeat.meet(stop.asked);
  stop.throwIfAsked();
  phase("facade");
}

/** Lets the runner do its job, and what it reports be delivered. */
async function runJob(
  launch: Launch,
  gate: Gate & Phased & { readonly runner: Runner },
): Promise<Outcome> {
  const { core, stop, limits, clock, runner } = gate;
  const { outbox, heartbeat, group } = core;
  await runner.register(runnerFile({
    uuid: launch.assignment,
    nonce: core.nonce,
    address: runnerAddress(launch.giteaUrl),
  }));
  group.spawn("heartbeat", heartbeat.run);
  group.spawn("stop", (signal) => stop.run(runner, signal));
  const gone = new AbortController();
  const delivery = deliver(outbox, AbortSignal.any([group.signal, stop.over, gone.signal]));
  group.spawn("linger", (signal) => endLingering(runner, delivery, { clock, limits, signal }));
  group.spawn("orphans", (signal) => endOrphans(runner, { clock, outbox, signal }));
  const end = await Promise.race([runner.ended, core.refused]);
  gate.phase("runner_ended");
  gate.logger.info("runner ended", { ...end, ...outbox.waiting });
  outbox.close();
  group.spawn("delivery limit", async (signal) => {
    await clock.sleep(limits.deliveryMs, signal);
    gone.abort(new DOMException("The time for delivery is over", "TimeoutError"));
  });
  return outcomeOf({
    runner: end,
    delivery: await delivery,
    handedOver: core.handedOver || outbox.started,
    finalStored: outbox.finalStored,
    stopped: stop.why,
  });
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
  options: {
    readonly clock: Clock;
    readonly outbox: Pick<GateCore["outbox"], "cancelled">;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  while (true) {
    await options.clock.sleep(ORPHANS_MS, options.signal);
    if (options.outbox.cancelled) await runner.endOrphans();
  }
}
