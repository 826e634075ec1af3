import { clone, create, timestampFromMs, toBinary } from "../proto/runtime.ts";
import {
  LogRowSchema,
  Result,
  type TaskState,
  TaskStateSchema,
  type UpdateLogRequest,
  type UpdateLogResponse,
  UpdateLogResponseSchema,
  type UpdateTaskRequest,
  UpdateTaskRequestSchema,
  type UpdateTaskResponse,
  UpdateTaskResponseSchema,
} from "../proto/gen/runner/v1/messages_pb.ts";
import { abortable } from "../lib/abortable.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { backoffMs } from "../lib/retry.ts";
import { createOutputQueue } from "./output_queue.ts";
import type { ReportSender, Sent } from "./report_sender.ts";
import { createRowQueue, type RowPhase } from "./row_queue.ts";
import type { RowSpool } from "./row_spool.ts";
import { judge } from "./verdict.ts";

export type { ReportSender, Sent } from "./report_sender.ts";

/** How the outbox ended. `drained`: the runner went without a final state, all else was delivered. */
export type OutboxEnd =
  | { readonly kind: "delivered"; readonly result: Result }
  | { readonly kind: "drained" }
  | { readonly kind: "refused"; readonly why: string };

/**
 * Store and forward between the runner and the facade.
 *
 *   runner --UpdateLog, UpdateTask--> answered at once from here      (never waits for the facade)
 *      rows, states in order, seal, final --drain--> facade           (repeated until accepted)
 *
 * - Rows keep the runner's own numbers; what the facade has acknowledged is forgotten.
 * - Of waiting states that are not final the oldest and the newest are kept.
 * - The log is sealed only together with the final state, so that a last row can still be added. The
 *   runner's own last row waits for that, because Gitea seals a log only by a row.
 * - What is too large in one piece goes up in smaller ones. An output that is too large by itself is
 *   lost and fails the job with a row that says so; many bytes of outputs go up before the seal.
 * - A cancel, or any end that Gitea knows, is passed on with the next answer to the runner.
 */
export interface Outbox {
  /** True after the runner's first report: it surely holds the task. */
  readonly started: boolean;
  /** True once the runner's final state is stored here. */
  readonly finalStored: boolean;
  /** True once the runner is told that the job is cancelled. */
  readonly cancelled: boolean;
  /** Reports stored but not accepted by the facade. */
  readonly waiting: { readonly rows: number; readonly states: number };
  /** Stores rows; undefined when the spool is full (the runner repeats them). */
  log(request: UpdateLogRequest): UpdateLogResponse | undefined;
  /** Stores a state. */
  state(request: UpdateTaskRequest): UpdateTaskResponse;
  /** From now on a success of an interrupted job is explained with `why`. */
  terminating(why: string): void;
  /** The runner has gone: {@link Outbox.run} ends when everything is delivered. */
  close(): void;
  /** Drains until the end; rejects with the signal's reason. Call it once. */
  run(signal: AbortSignal): Promise<OutboxEnd>;
}

/** What the outbox works with. */
export interface OutboxDeps {
  readonly taskId: bigint;
  readonly sender: ReportSender;
  readonly spool: RowSpool;
  readonly clock: Clock;
  readonly random: () => number;
  readonly logger: Logger;
  /** What the runner called itself; asked when the final state comes. */
  readonly runnerVersion: () => string;
  /** How long the facade must go on refusing until that is final, ms. */
  readonly refusalMs: number;
}

/** Outputs above this may be refused as too large: they go up while the log can still tell. */
const BULKY_BYTES = 512 * 1024;
/** The runner's final state follows its last row within milliseconds. */
const HOLD_MS = 500;
const RETRY = { firstMs: 200, maxMs: 5000 };
const HEARTBEAT_MS = 3000;
const REFUSED_RETRY_MS = 2000;

type Progress = "more" | "finished";

interface Waiting {
  readonly state: TaskState;
  /** Rows that go before it. */
  readonly after: bigint;
}

/** Makes an {@link Outbox} for one task. */
export function createOutbox(deps: OutboxDeps): Outbox {
  const { clock, logger } = deps;
  const rows = createRowQueue(deps);
  const outputs = createOutputQueue();
  const lost: { readonly name: string; readonly bytes: number }[] = [];
  let states: readonly Waiting[] = [];
  let final: TaskState | undefined;
  let cancelled = false;
  let closed = false;
  /** Until when the runner's last row waits for its final state. */
  let holdUntil = 0;
  let started = false;
  let reason: string | undefined;
  let newest = { bytes: "", outputs: 0, at: 0 };
  let wake = Promise.withResolvers<void>();

  const changed = () => {
    started = true;
    wake.resolve();
  };
  /** Only after the runner's last row: its numbers would be wrong afterwards. */
  const addOwnRow = (content: string) =>
    rows.add(create(LogRowSchema, { time: timestampFromMs(clock.now()), content }));

  /** Says what was lost in the job's log, and that it has failed. */
  const tellLosses = () => {
    if (final === undefined) return;
    for (const { name, bytes } of lost.splice(0)) {
      const quoted = JSON.stringify(name.slice(0, 100));
      addOwnRow(
        `Error: the output ${quoted} of this job is lost: Gitea, or a proxy in front of it, does ` +
          `not take its ${bytes} bytes. The job is recorded as failed.`,
      );
      if (final.result === Result.SUCCESS) final = { ...final, result: Result.FAILURE };
    }
  };

  /** Sends a state with the outputs that are new; in parts, not final ones, if those are large. */
  const sendState = async (
    state: TaskState,
    signal: AbortSignal,
  ): Promise<Sent<"all" | "part" | "again">> => {
    const { outputs: some, isAll } = outputs.next();
    const request = create(UpdateTaskRequestSchema, { state: clone(TaskStateSchema, state) });
    Object.assign(request.outputs, some);
    if (!isAll && request.state !== undefined) makeUnfinished(request.state);
    const sent = await deps.sender.updateTask(request, { signal });
    if (sent.kind === "too_large" && Object.keys(some).length > 0) {
      const output = outputs.tooLarge(some);
      if (output !== undefined) {
        logger.warn("an output is too large for Gitea", { ...output, why: sent.why });
        lost.push(output);
        tellLosses();
      }
      return { kind: "accepted", value: "again" };
    }
    if (sent.kind !== "accepted") return sent;
    outputs.accepted(some);
    const result = sent.value.state?.result ?? Result.UNSPECIFIED;
    if (result !== Result.UNSPECIFIED && state.result === Result.UNSPECIFIED) cancelled = true;
    return { kind: "accepted", value: isAll ? "all" : "part" };
  };

  const isHolding = () => final === undefined && !closed && clock.monotonic() < holdUntil;

  /** The next thing that must go up, or undefined when there is nothing. */
  const next = (): ((signal: AbortSignal) => Promise<Sent<Progress>>) | undefined => {
    const [first] = states;
    if (first !== undefined && first.after <= rows.received) {
      return async (signal) => {
        const sent = await sendState(first.state, signal);
        if (sent.kind !== "accepted") {
          rows.repeatSeal();
          return sent;
        }
        if (sent.value !== "again") states = states.filter((waiting) => waiting !== first);
        return { kind: "accepted", value: "more" };
      };
    }
    const last = final;
    const bulky = last !== undefined && !rows.sealed && outputs.unsentBytes > BULKY_BYTES;
    const phase: RowPhase = {
      holdLast: bulky || isHolding(),
      seal: last !== undefined && !bulky,
    };
    if (rows.due(phase)) {
      return async (signal) => {
        const sent = await rows.send(phase, signal);
        return sent.kind === "accepted" ? { kind: "accepted", value: "more" } : sent;
      };
    }
    if (last === undefined) return undefined;
    return async (signal) => {
      const sent = await sendState(
        bulky ? makeUnfinished(clone(TaskStateSchema, last)) : last,
        signal,
      );
      if (sent.kind !== "accepted") {
        rows.repeatSeal();
        return sent;
      }
      return { kind: "accepted", value: sent.value === "all" && !bulky ? "finished" : "more" };
    };
  };

  /** A state that says nothing new is a heartbeat: one in {@link HEARTBEAT_MS} is enough. */
  const isRepeated = (state: TaskState): boolean => {
    const bytes = toBinary(TaskStateSchema, state).toHex();
    const now = clock.monotonic();
    const repeated = bytes === newest.bytes && outputs.size === newest.outputs &&
      now - newest.at < HEARTBEAT_MS;
    if (!repeated) newest = { bytes, outputs: outputs.size, at: now };
    return repeated;
  };

  const store = (state: TaskState | undefined) => {
    if (state === undefined || final !== undefined) return;
    if (state.result === Result.UNSPECIFIED) {
      if (!isRepeated(state)) states = [...states.slice(0, 1), { state, after: rows.stored }];
      return;
    }
    const verdict = judge({
      state,
      lastRow: rows.lastRow,
      runnerVersion: deps.runnerVersion(),
      cancelled,
      terminating: reason,
    });
    if (verdict.row !== undefined) addOwnRow(verdict.row);
    if (verdict.result !== state.result) {
      logger.warn("final state of the runner is not believed", {
        said: Result[state.result],
        reported: Result[verdict.result],
      });
    }
    final = { ...state, result: verdict.result };
    tellLosses();
  };

  return {
    get started() {
      return started;
    },
    get finalStored() {
      return final !== undefined;
    },
    get cancelled() {
      return cancelled;
    },
    get waiting() {
      return { rows: rows.waiting, states: states.length + (final === undefined ? 0 : 1) };
    },
    log(request) {
      if (final === undefined && request.index <= rows.stored) {
        const fresh = request.rows.slice(Number(rows.stored - request.index));
        for (const row of fresh) if (!rows.add(row)) return undefined;
        if (request.noMore) holdUntil = clock.monotonic() + HOLD_MS;
        changed();
      }
      const ackIndex = final === undefined
        ? rows.stored
        : request.index + BigInt(request.rows.length);
      return create(UpdateLogResponseSchema, { ackIndex });
    },
    state(request) {
      outputs.add(request.outputs);
      store(request.state);
      changed();
      const result = request.state?.result || (cancelled ? Result.CANCELLED : Result.UNSPECIFIED);
      return create(UpdateTaskResponseSchema, {
        state: { id: request.state?.id ?? 0n, result },
        sentOutputs: outputs.keys(),
      });
    },
    terminating(why) {
      reason ??= why;
    },
    close() {
      closed = true;
      wake.resolve();
    },
    async run(signal) {
      let failures = 0;
      let refusedSince: number | undefined;
      while (true) {
        signal.throwIfAborted();
        wake = Promise.withResolvers();
        const send = next();
        if (send === undefined) {
          if (closed) return { kind: "drained" };
          using hold = isHolding() ? clock.timeout(holdUntil - clock.monotonic()) : undefined;
          hold?.signal.addEventListener("abort", () => wake.resolve(), { once: true });
          await abortable(wake.promise, signal);
          continue;
        }
        const sent = await send(signal);
        switch (sent.kind) {
          case "accepted":
            failures = 0;
            refusedSince = undefined;
            if (sent.value === "finished") {
              return { kind: "delivered", result: final?.result ?? Result.UNSPECIFIED };
            }
            break;
          case "later":
          case "too_large":
            failures++;
            logger.warn("facade does not take a report now", {
              why: sent.why,
              attempt: failures,
              rows: rows.waiting,
            });
            await clock.sleep(backoffMs(failures, RETRY, deps.random), signal);
            break;
          case "refused":
            // A controller that has just started may not know the claim before our heartbeat.
            refusedSince ??= clock.monotonic();
            if (clock.monotonic() - refusedSince >= deps.refusalMs) {
              cancelled = true;
              return { kind: "refused", why: sent.why };
            }
            await clock.sleep(REFUSED_RETRY_MS, signal);
            break;
          default:
            sent satisfies never;
        }
      }
    },
  };
}

/** A state that does not end the job, whatever it was. */
function makeUnfinished(state: TaskState): TaskState {
  state.result = Result.UNSPECIFIED;
  delete state.stoppedAt;
  return state;
}
