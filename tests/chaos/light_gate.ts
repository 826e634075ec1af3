import { watchSvids } from "../../clients/spiffe/workload_api.ts";
import { taskIdOf } from "../../controller/model/ids.ts";
import { EXIT, type Outcome } from "../../executor/exit_codes.ts";
import { createFacadeApi } from "../../executor/facade_api.ts";
import { createFacadeLink } from "../../executor/facade_link.ts";
import { GateEnd, outcomeOf } from "../../executor/gate_end.ts";
import { GATE_LIMITS } from "../../executor/gate_limits.ts";
import { createHeartbeat } from "../../executor/heartbeat.ts";
import type { Launch } from "../../executor/launch.ts";
import { createOutbox } from "../../executor/outbox.ts";
import { createRowSpool } from "../../executor/row_spool.ts";
import { createRunnerService } from "../../executor/runner_service.ts";
import { systemClock } from "../../lib/clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { randomHex } from "../../lib/random_hex.ts";
import { createTaskGroup } from "../../lib/task_group.ts";
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
  const link = stack.use(createFacadeLink(svids, {
    url: launch.facadeUrl,
    spiffeId: launch.facadeSpiffeId,
    assignment: launch.assignment,
    capability: launch.capability,
    gate: randomHex(16),
  }));
  const facade = createFacadeApi(link, systemClock);
  // Never written: what these jobs print fits into memory.
  const spool = stack.use(createRowSpool({ file: "/nonexistent/rows" }));
  const group = stack.use(createTaskGroup(silentLogger, killed));
  const early = Promise.withResolvers<never>();
  early.promise.catch(() => {});
  let handedOver = false;
  const taskId = BigInt(taskIdOf(launch.assignment) ?? "0");
  const outbox = createOutbox({
    ...common,
    taskId,
    sender: facade,
    spool,
    runnerVersion: () => "v1.0.8",
    refusalMs: GATE_LIMITS.refusalMs,
  });
  const nonce = randomHex(32);
  const service = createRunnerService({
    ...common,
    facade,
    outbox,
    uuid: launch.assignment,
    nonce,
    taskId,
    onDeclare() {},
    onTask(task) {
      if (task === "handed_over") {
        handedOver = true;
        options.onPhase("holding");
      } else early.reject(new GateEnd(EXIT.claimRefused, `claim refused: ${task.refused}`));
    },
  });
  const heartbeat = createHeartbeat({
    ...common,
    facade,
    limits: GATE_LIMITS,
    outbox,
    end: early.reject,
  });
  const runnerSignal = AbortSignal.any([killed, runnerKilled, group.signal]);
  const rpc: RunnerRpc = async (method, body) => {
    if (method === "FetchTask" && !handedOver) options.onPhase("asking");
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
    const delivery = outbox.run(group.signal).catch((error: unknown) => (
      { kind: "given_up", error } as const
    ));
    const runner = runLightJob(rpc, runnerSignal).then(
      () => ({ code: 0, signal: null }),
      () =>
        runnerKilled.aborted
          ? { code: 137, signal: "SIGKILL" } as const
          : { code: 1, signal: null },
    );
    const end = await Promise.race([runner, early.promise]);
    outbox.close();
    return outcomeOf({
      runner: end,
      delivery: await delivery,
      handedOver: handedOver || outbox.started,
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
  await heartbeat.exit(outcome, { claimed: handedOver, over: killed });
  return outcome;
}
