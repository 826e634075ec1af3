import { type Gitea, GiteaError } from "../controller/gitea.ts";
import type { AssignmentInfo } from "../controller/model/assignment_info.ts";
import type { Result } from "../controller/model/reason.ts";
import type { ExecutorEvents } from "../controller/offers.ts";
import { isGone } from "../controller/settle.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { create } from "../proto/runtime.ts";
import {
  Result as WireResult,
  type UpdateLogRequest,
  type UpdateLogResponse,
  UpdateLogResponseSchema,
  type UpdateTaskResponse,
  UpdateTaskResponseSchema,
} from "../proto/gen/runner/v1/messages_pb.ts";
import { createLogRelay } from "./log_relay.ts";
import { createStateRelay, type StateReport, stopped } from "./state_relay.ts";
import { createTurnstile } from "./turnstile.ts";

/**
 * Passes one task's reports on to Gitea, one call at a time and in the order in which they came.
 *
 *   rows ------------------> Gitea at once
 *   no_more ---------------> acknowledged, held back with its last row --+
 *   final state --> judge() --> last row, reason row, no_more <----------+ --> final state --> settled
 *
 * - Nothing is retried here: what Gitea does not take is answered with its `GiteaError`, and the
 *   gate's queue repeats it. Every step may be repeated.
 * - Once Gitea says for good that it does not know the task, reports are answered from here.
 */
export interface Relay {
  /** Throws `GiteaError`, or the signal's reason. The request is in the runner's numbers. */
  updateLog(request: UpdateLogRequest, signal: AbortSignal): Promise<UpdateLogResponse>;
  /** Throws `GiteaError`, or the signal's reason. */
  updateTask(report: StateReport, signal: AbortSignal): Promise<UpdateTaskResponse>;
  /** An earlier process may have kept the end of the log: the gate is made to send it again. */
  restored(): void;
  /** The executor is being terminated: a success of an interrupted job is not believed from now on. */
  terminating(why: string): void;
  /** An operator wants the job to end: every report is answered with that, its end is a cancel. */
  cancel(why: string): void;
  /**
   * Brings the final state to Gitea that was reported and not taken: nobody repeats it any more.
   * Resolves to the outcome, null when there is none. Throws `GiteaError`, or the signal's reason.
   */
  conclude(signal: AbortSignal): Promise<Result | null>;
  /** Seals the log if the outcome is settled and nobody has. Throws `GiteaError`. */
  seal(signal: AbortSignal): Promise<void>;
  /** The settled outcome; null until Gitea has accepted one. */
  readonly outcome: Result | null;
}

/** What {@link createRelay} needs. */
export interface RelayDeps {
  readonly gitea: Gitea;
  readonly events: ExecutorEvents;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Makes the relay of a claimed task whose first row is Gitea's row `logOffset`. */
export function createRelay(deps: RelayDeps, info: AssignmentInfo, logOffset: number): Relay {
  const { gitea, events, clock } = deps;
  const logger = deps.logger.child({ assignment: info.id });
  const taskId = BigInt(info.taskId);
  const offset = BigInt(logOffset);
  const turnstile = createTurnstile();
  let outcome: Result | null = null;
  let held = false;
  let forgotten = false;

  const touch = () => {
    if (held) return;
    held = true;
    events.updated(info.id);
  };
  const settle = (result: Result) => {
    if (outcome !== null) return;
    outcome = result;
    events.finalAccepted(info.id, result);
  };
  const log = createLogRelay({ gitea, clock }, { taskId, offset });
  const states = createStateRelay({ gitea, events, clock, log, settle }, {
    id: info.id,
    taskId,
    offset,
  });
  /** Gitea will never know this task again: the executor is told so, and its reports end here. */
  const forget = (error: GiteaError) => {
    logger.warn("Gitea does not know the task", { error });
    forgotten = true;
    settle("cancelled");
  };
  const forwardRows = async (request: UpdateLogRequest, signal: AbortSignal): Promise<bigint> => {
    try {
      const ack = await log.forward(request, { settled: outcome !== null, signal });
      if (request.rows.length > 0) events.rowsForwarded?.(info.id);
      return ack;
    } catch (error) {
      if (!(error instanceof GiteaError)) throw error;
      if (isGone(error)) forget(error);
      else if (error.code !== "log_sealed") throw error;
      // Nothing can take them any more; repeated, they would keep the executor for an hour.
      const rows = request.rows.length;
      if (rows > 0) logger.warn("log rows came after the log was sealed", { rows });
      return endOf(request);
    }
  };
  const forwardState = async (report: StateReport, signal: AbortSignal) => {
    const isFinal = report.state.result !== WireResult.UNSPECIFIED;
    if (states.final !== null && isFinal) return states.final;
    if (outcome !== null) return told(taskId, report);
    try {
      return isFinal ? await states.finish(report, signal) : await states.heartbeat(report, signal);
    } catch (error) {
      if (!(error instanceof GiteaError) || !isGone(error)) throw error;
      forget(error);
      return told(taskId, report);
    }
  };

  return {
    get outcome() {
      return outcome;
    },
    restored: states.restored,
    terminating: states.terminating,
    cancel: states.cancel,
    updateLog(request, signal) {
      touch();
      return turnstile.pass(signal, async () => {
        const ackIndex = forgotten ? endOf(request) : await forwardRows(request, signal);
        return create(UpdateLogResponseSchema, { ackIndex });
      });
    },
    updateTask(report, signal) {
      touch();
      return turnstile.pass(signal, () => forwardState(report, signal));
    },
    conclude(signal) {
      return turnstile.pass(signal, async () => {
        const { reported } = states;
        if (outcome === null && reported !== null) await forwardState(reported, signal);
        return outcome;
      });
    },
    seal(signal) {
      return turnstile.pass(signal, async () => {
        if (outcome === null || forgotten) return;
        try {
          await log.seal(null, signal);
        } catch (error) {
          if (!(error instanceof GiteaError) || !isGone(error)) throw error;
          forgotten = true;
        }
      });
    },
  };
}

function endOf({ index, rows }: UpdateLogRequest): bigint {
  return index + BigInt(rows.length);
}

/** The answer to a report that comes after the end. */
function told(taskId: bigint, { outputs }: StateReport): UpdateTaskResponse {
  return create(UpdateTaskResponseSchema, {
    state: stopped(taskId),
    sentOutputs: Object.keys(outputs),
  });
}
