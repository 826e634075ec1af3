import { watchSvids } from "../../clients/spiffe/workload_api.ts";
import { EXIT, type Outcome } from "../../executor/exit_codes.ts";
import { createGateCore } from "../../executor/gate_core.ts";
import { GateEnd, outcomeOf } from "../../executor/gate_end.ts";
import { GATE_LIMITS } from "../../executor/gate_limits.ts";
import type { Launch } from "../../executor/launch.ts";
import { deliver } from "../../executor/outbox.ts";
import { systemClock } from "../../lib/clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { runLightJob, type RunnerRpc } from "./light_job.ts";

/** How far an executor has come. `asking`: it may have been given its task without knowing. */
export type LightPhase = "before" | "asking" | "holding";

/** Who may be killed, and what is told meanwhile. */
export interface LightGateOptions {
  /** The whole executor is gone at this very moment: nothing is said any more. */
  readonly killed: AbortSignal;
  /** Its runner alone is. */
  readonly runnerKilled: AbortSignal;
  onPhase(phase: LightPhase): void;
}

const common = { clock: systemClock, random: Math.random, logger: silentLogger };

/**
 * The identity gate without its process, its proxy and its runner's process: the SVID comes from the
 * real Workload API, the facade is spoken to by the gate's own link, runner service, outbox and
 * heartbeats, and the job is done in here. Resolves to how it ended; rejects when it was killed.
 */
export async function runLightGate(launch: Launch, options: LightGateOptions): Promise<Outcome> {
  const { killed, runnerKilled } = options;
  await using stack = new AsyncDisposableStack();
  const svids = stack.use(
    watchSvids({ endpoint: launch.endpoint, spiffeId: launch.spiffeId, ...common }, {
      signal: killed,
    }),
  );
  const core = stack.use(createGateCore(launch, {
    ...common,
    svids,
    limits: GATE_LIMITS,
    // Never written: what these jobs print fits into memory.
    spoolFile: "/nonexistent/rows",
    signal: killed,
    onDeclare() {},
    onTask: () => options.onPhase("holding"),
  }));
  const { service, outbox, heartbeat, group, nonce } = core;
  const runnerSignal = AbortSignal.any([killed, runnerKilled, group.signal]);
  const rpc: RunnerRpc = async (method, body) => {
    if (method === "FetchTask" && !core.handedOver) options.onPhase("asking");
    const header = (name: string) =>
      ({
        "x-runner-token": nonce,
        "x-runner-uuid": launch.assignment as string,
        "content-type": "application/proto",
      })[name];
    const path = `/runner.v1.RunnerService/${method}`;
    const answer = await service.answer({ method: path, header, body }, runnerSignal);
    if (answer.status === 200) return answer.body;
    throw new Error(`${method}: ${answer.status} ${new TextDecoder().decode(answer.body)}`);
  };

  const run = async (): Promise<Outcome> => {
    await svids.ready(killed);
    await heartbeat.meet(killed);
    group.spawn("heartbeat", heartbeat.run);
    const delivery = deliver(outbox, group.signal);
    const runner = runLightJob(rpc, runnerSignal).then(
      () => ({ code: 0, signal: null }),
      () =>
        runnerKilled.aborted
          ? { code: 137, signal: "SIGKILL" } as const
          : { code: 1, signal: null },
    );
    const end = await Promise.race([runner, core.refused]);
    outbox.close();
    return outcomeOf({
      runner: end,
      delivery: await delivery,
      handedOver: core.handedOver || outbox.started,
      finalStored: outbox.finalStored,
      stopped: undefined,
    });
  };
  const outcome = await run().catch((error: unknown): Outcome => {
    killed.throwIfAborted();
    if (error instanceof GateEnd) return error.outcome;
    return { code: EXIT.internal, detail: String(error) };
  });
  killed.throwIfAborted();
  await heartbeat.exit(outcome, { claimed: core.handedOver, over: killed, phases: {} });
  return outcome;
}
