import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { create, toBinary } from "../proto/runtime.ts";
import {
  Result as WireResult,
  type TaskState,
  TaskStateSchema,
  type UpdateLogRequest,
  type UpdateLogResponse,
  UpdateLogResponseSchema,
  type UpdateTaskRequest,
  type UpdateTaskResponse,
  UpdateTaskResponseSchema,
} from "../proto/gen/runner/v1/messages_pb.ts";
import { type Gitea, GiteaError } from "../controller/gitea.ts";
import type { AssignmentInfo } from "../controller/model/assignment_info.ts";
import type { Result } from "../controller/model/reason.ts";
import type { ExecutorEvents } from "../controller/offers.ts";
import { fromWireResult, isGone } from "../controller/settle.ts";
import { createLogRelay } from "./log_relay.ts";
import { shiftSteps, snapshotSteps } from "./offsets.ts";
import { createTurnstile } from "./turnstile.ts";
import { judge, type Verdict } from "./verdict.ts";

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
  updateTask(
    request: { readonly state: TaskState; readonly outputs: UpdateTaskRequest["outputs"] },
    signal: AbortSignal,
  ): Promise<UpdateTaskResponse>;
  /** An earlier process may have kept the end of the log: the gate is made to send it again. */
  restored(): void;
  /** The executor is being terminated: a success of an interrupted job is not believed from now on. */
  terminating(why: string): void;
  /** An operator wants the job to end: every report is answered with that, its end is a cancel. */
  cancel(why: string): void;
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

/** An unchanged state is forwarded at most this often. */
const STATE_EVERY_MS = 10_000;

/** Makes the relay of a claimed task whose first row is Gitea's row `logOffset`. */
export function createRelay(deps: RelayDeps, info: AssignmentInfo, logOffset: number): Relay {
  const { gitea, events, clock } = deps;
  const logger = deps.logger.child({ assignment: info.id });
  const taskId = BigInt(info.taskId);
  const offset = BigInt(logOffset);
  const turnstile = createTurnstile();
  const log = createLogRelay({ gitea, clock }, { taskId, offset });
  let why: string | null = null;
  let last:
    | { readonly key: string; readonly at: number; readonly answer: UpdateTaskResponse }
    | null = null;
  let cancelled = false;
  let asked: string | null = null;
  let verdict: Verdict | null = null;
  let final: UpdateTaskResponse | null = null;
  let outcome: Result | null = null;
  let held = false;
  let forgotten = false;
  let mayMissRows = false;

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
  /** Gitea will never know this task again: the executor is told so, and its reports end here. */
  const forget = (error: GiteaError) => {
    logger.warn("Gitea does not know the task", { error });
    forgotten = true;
    settle("cancelled");
  };

  const forwardRows = async (request: UpdateLogRequest, signal: AbortSignal): Promise<bigint> => {
    try {
      return await log.forward(request, { settled: outcome !== null, signal });
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
  const forwardState = async (
    state: TaskState,
    outputs: UpdateTaskRequest["outputs"],
    signal: AbortSignal,
  ) => {
    const shifted = shiftSteps(state, offset);
    const answer = await gitea.updateTask({ state: shifted, outputs }, { signal });
    events.stepsForwarded(info.id, snapshotSteps(shifted));
    return answer;
  };
  const heartbeat = async (
    state: TaskState,
    outputs: UpdateTaskRequest["outputs"],
    signal: AbortSignal,
  ) => {
    const key = keyOf(state, outputs);
    const now = clock.monotonic();
    const end = (answer: UpdateTaskResponse): UpdateTaskResponse =>
      asked === null
        ? answer
        : create(UpdateTaskResponseSchema, { ...answer, state: stopped(taskId) });
    if (last?.key === key && now - last.at < STATE_EVERY_MS) return end(last.answer);
    const answer = await forwardState(state, outputs, signal);
    if ((answer.state?.result ?? WireResult.UNSPECIFIED) !== WireResult.UNSPECIFIED) {
      cancelled ||= answer.state?.result === WireResult.CANCELLED;
      answer.state = stopped(taskId);
    }
    last = { key, at: now, answer };
    return end(answer);
  };
  const finish = async (
    state: TaskState,
    outputs: UpdateTaskRequest["outputs"],
    signal: AbortSignal,
  ) => {
    if (mayMissRows && !log.isComplete) {
      // Only once: a gate of an earlier version may have nothing to send again.
      mayMissRows = false;
      throw new GiteaError("unavailable", "Take the final state: the log's end has to come first");
    }
    const { lastRow } = log;
    const facts = { result: state.result, lastRow, terminating: why, cancelled };
    const now = explained(judge(facts), asked);
    // A reason that stands in a sealed log cannot be taken back.
    if (verdict === null || verdict.row === null) verdict = now;
    if (verdict.row !== null || log.isComplete) await log.seal(verdict.row, signal);
    const judged = { ...state, result: verdict.result };
    const answer = await forwardState(judged, outputs, signal);
    final = answer;
    settle(
      fromWireResult(answer.state?.result ?? WireResult.UNSPECIFIED) ??
        fromWireResult(verdict.result) ?? "failure",
    );
    return answer;
  };

  return {
    get outcome() {
      return outcome;
    },
    restored() {
      mayMissRows = true;
    },
    terminating(reason) {
      why ??= reason;
    },
    cancel(reason) {
      asked ??= reason;
      cancelled = true;
    },
    updateLog(request, signal) {
      touch();
      return turnstile.pass(signal, async () => {
        const ackIndex = forgotten ? endOf(request) : await forwardRows(request, signal);
        return create(UpdateLogResponseSchema, { ackIndex });
      });
    },
    updateTask({ state, outputs }, signal) {
      touch();
      return turnstile.pass(signal, async () => {
        const isFinal = state.result !== WireResult.UNSPECIFIED;
        if (final !== null && isFinal) return final;
        if (outcome !== null) {
          return create(UpdateTaskResponseSchema, {
            state: stopped(taskId),
            sentOutputs: Object.keys(outputs),
          });
        }
        try {
          return isFinal
            ? await finish(state, outputs, signal)
            : await heartbeat(state, outputs, signal);
        } catch (error) {
          if (!(error instanceof GiteaError) || !isGone(error)) throw error;
          forget(error);
          return create(UpdateTaskResponseSchema, {
            state: stopped(taskId),
            sentOutputs: Object.keys(outputs),
          });
        }
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

/** Who wanted the end stands in the log, unless the job came to an end of its own before it heard. */
function explained(verdict: Verdict, asked: string | null): Verdict {
  if (asked === null || verdict.row !== null || verdict.result === WireResult.SUCCESS) {
    return verdict;
  }
  return { ...verdict, row: `gitea-dynamic-runner: ${asked}` };
}

/** The one answer that every version of the runner obeys. */
function stopped(taskId: bigint): TaskState {
  return create(TaskStateSchema, { id: taskId, result: WireResult.CANCELLED });
}

/** Equal for states that say the same. */
function keyOf(state: TaskState, outputs: UpdateTaskRequest["outputs"]): string {
  return `${toBinary(TaskStateSchema, state).toBase64()} ${JSON.stringify(outputs)}`;
}
