import { type Gitea, GiteaError } from "../controller/gitea.ts";
import type { AssignmentId } from "../controller/model/ids.ts";
import type { Result } from "../controller/model/reason.ts";
import type { ExecutorEvents } from "../controller/offers.ts";
import { fromWireResult } from "../controller/settle.ts";
import type { Clock } from "../lib/clock.ts";
import { create, toBinary } from "../proto/runtime.ts";
import {
  Result as WireResult,
  type TaskState,
  TaskStateSchema,
  type UpdateTaskRequest,
  type UpdateTaskResponse,
  UpdateTaskResponseSchema,
} from "../proto/gen/runner/v1/messages_pb.ts";
import type { LogRelay } from "./log_relay.ts";
import { shiftSteps, snapshotSteps } from "./offsets.ts";
import { judge, type Verdict } from "./verdict.ts";

/** What a runner says of its task. */
export interface StateReport {
  /** In the runner's numbers. */
  readonly state: TaskState;
  readonly outputs: UpdateTaskRequest["outputs"];
}

/**
 * The states of one claimed task on their way to Gitea. Calls must not overlap. Nothing is retried;
 * what Gitea does not take is a `GiteaError`.
 */
export interface StateRelay {
  /** Forwards a state that is not final, an unchanged one each 10 s. */
  heartbeat(report: StateReport, signal: AbortSignal): Promise<UpdateTaskResponse>;
  /** Judges a final state, ends the log accordingly, and forwards what was judged. */
  finish(report: StateReport, signal: AbortSignal): Promise<UpdateTaskResponse>;
  /** The final state that the runner has reported last, taken by Gitea or not; null before. */
  readonly reported: StateReport | null;
  /** Gitea's answer to the final state; null before. */
  readonly final: UpdateTaskResponse | null;
  /** The executor is being terminated; the first reason stays. */
  terminating(why: string): void;
  /** An operator wants the job to end; the first reason stays. */
  cancel(why: string): void;
  /** An earlier process may have kept the end of the log: the gate is made to send it again. */
  restored(): void;
}

/** What it works with. */
export interface StateRelayDeps {
  readonly gitea: Gitea;
  readonly events: Pick<
    ExecutorEvents,
    "stepsForwarded" | "endReported" | "endedAtGitea" | "whyDeleted"
  >;
  readonly clock: Clock;
  readonly log: LogRelay;
  /** Gitea has accepted the final state. */
  settle(result: Result): void;
}

/** An unchanged state is forwarded at most this often. */
const STATE_EVERY_MS = 10_000;

/** Makes the {@link StateRelay} of a task whose first row is Gitea's row `offset`. */
export function createStateRelay(
  deps: StateRelayDeps,
  task: { readonly id: AssignmentId; readonly taskId: bigint; readonly offset: bigint },
): StateRelay {
  const { gitea, events, clock, log, settle } = deps;
  let why: string | null = null;
  let last:
    | { readonly key: string; readonly at: number; readonly answer: UpdateTaskResponse }
    | null = null;
  let cancelled = false;
  let asked: string | null = null;
  let verdict: Verdict | null = null;
  let final: UpdateTaskResponse | null = null;
  let reported: StateReport | null = null;
  let mayMissRows = false;
  /** What {@link keep} has kept. */
  let kept: string | null = null;

  const forwardState = async (
    state: TaskState,
    outputs: UpdateTaskRequest["outputs"],
    signal: AbortSignal,
  ) => {
    const shifted = shiftSteps(state, task.offset);
    const answer = await gitea.updateTask({ state: shifted, outputs }, { signal });
    events.stepsForwarded(task.id, snapshotSteps(shifted));
    return answer;
  };
  /**
   * Keeps the end before the log is sealed: if the executor and this process are lost right after that,
   * nobody could say any more in the log why the job has failed. What is kept has no outputs, so that
   * Gitea is given them before; it takes them of a job that still runs.
   */
  const keep = async (
    state: TaskState,
    { row }: Verdict,
    outputs: UpdateTaskRequest["outputs"],
    signal: AbortSignal,
  ) => {
    const result = fromWireResult(state.result);
    const key = `${state.result} ${row}`;
    if (result === null || key === kept || events.endReported === undefined) return;
    if (Object.keys(outputs).length > 0) {
      await forwardState({ ...state, result: WireResult.UNSPECIFIED }, outputs, signal);
    }
    const steps = snapshotSteps(shiftSteps(state, task.offset));
    await events.endReported(task.id, { result, steps, row }, signal);
    kept = key;
  };
  /** What the runner is told: of an operator's cancel, too. */
  const heard = (answer: UpdateTaskResponse): UpdateTaskResponse =>
    asked === null
      ? answer
      : create(UpdateTaskResponseSchema, { ...answer, state: stopped(task.taskId) });

  return {
    get reported() {
      return reported;
    },
    get final() {
      return final;
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
    async heartbeat({ state, outputs }, signal) {
      const key = keyOf(state, outputs);
      const now = clock.monotonic();
      if (last?.key === key && now - last.at < STATE_EVERY_MS) return heard(last.answer);
      const answer = await forwardState(state, outputs, signal);
      if ((answer.state?.result ?? WireResult.UNSPECIFIED) !== WireResult.UNSPECIFIED) {
        cancelled ||= answer.state?.result === WireResult.CANCELLED;
        answer.state = stopped(task.taskId);
        events.endedAtGitea(task.id);
      }
      last = { key, at: now, answer };
      return heard(answer);
    },
    async finish(report, signal) {
      const { state, outputs } = report;
      if (mayMissRows && !log.isComplete) {
        // Only once: a gate of an earlier version may have nothing to send again.
        mayMissRows = false;
        throw new GiteaError(
          "unavailable",
          "Take the final state: the log's end has to come first",
        );
      }
      reported = report;
      const { lastRow } = log;
      // The gate only knows that it was told to end, the controller may know by whom.
      const deleted = events.whyDeleted?.(task.id) ?? null;
      const terminating = why === null ? null : deleted ?? why;
      const facts = { result: state.result, lastRow, terminating, cancelled };
      const now = explained(judge(facts), asked ?? (cancelled ? null : deleted));
      // A reason that stands in a sealed log cannot be taken back.
      if (verdict === null || verdict.row === null) verdict = now;
      const judged = { ...state, result: verdict.result };
      await keep(judged, verdict, outputs, signal);
      if (verdict.row !== null || log.isComplete) await log.seal(verdict.row, signal);
      const answer = await forwardState(judged, outputs, signal);
      final = answer;
      settle(
        fromWireResult(answer.state?.result ?? WireResult.UNSPECIFIED) ??
          fromWireResult(verdict.result) ?? "failure",
      );
      return answer;
    },
  };
}

/**
 * Who wanted the end, or brought it about, stands in the log, unless the job came to an end of its own
 * before it heard.
 */
function explained(verdict: Verdict, asked: string | null): Verdict {
  if (asked === null || verdict.row !== null || verdict.result === WireResult.SUCCESS) {
    return verdict;
  }
  return { ...verdict, row: `gitea-dynamic-runner: ${asked}` };
}

/** The one answer that every version of the runner obeys. */
export function stopped(taskId: bigint): TaskState {
  return create(TaskStateSchema, { id: taskId, result: WireResult.CANCELLED });
}

/** Equal for states that say the same. */
function keyOf(state: TaskState, outputs: UpdateTaskRequest["outputs"]): string {
  return `${toBinary(TaskStateSchema, state).toBase64()} ${JSON.stringify(outputs)}`;
}
