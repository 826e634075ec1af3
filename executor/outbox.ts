import { abortable, onAbort } from "../lib/abortable.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import {
  LogRowSchema,
  Result,
  type TaskState,
  type UpdateLogRequest,
  type UpdateLogResponse,
  UpdateLogResponseSchema,
  type UpdateTaskRequest,
  type UpdateTaskResponse,
  UpdateTaskResponseSchema,
} from "../proto/gen/runner/v1/messages_pb.ts";
import { create, timestampFromMs } from "../proto/runtime.ts";
import { drain, type DrainSource } from "./drain.ts";
import { nextStep } from "./next_step.ts";
import type { ReportSender } from "./report_sender.ts";
import { createRowQueue } from "./row_queue.ts";
import type { RowSpool } from "./row_spool.ts";
import { createStateQueue } from "./state_queue.ts";
import { judge } from "./verdict.ts";

/** How the outbox ended. `drained`: the runner went without a final state, all else was delivered. */
export type OutboxEnd =
  | { readonly kind: "delivered"; readonly result: Result }
  | { readonly kind: "drained" }
  | { readonly kind: "refused"; readonly why: string };

/** The signal has ended the delivery. */
export type GivenUp = { readonly kind: "given_up"; readonly error: unknown };

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

/** The runner's final state follows its last row within milliseconds. */
const HOLD_MS = 500;

/** Makes an {@link Outbox} for one task. */
export function createOutbox(deps: OutboxDeps): Outbox {
  const { clock } = deps;
  const rows = createRowQueue(deps);
  /** Only after the runner's last row: its numbers would be wrong afterwards. */
  const addRow = (content: string) =>
    void rows.add(create(LogRowSchema, { time: timestampFromMs(clock.now()), content }));
  const states = createStateQueue({ ...deps, addRow });
  let started = false;
  let closed = false;
  let reason: string | null = null;
  /** Until when the runner's last row waits for its final state. */
  let holdUntil = 0;
  let wake = Promise.withResolvers<void>();

  const changed = () => {
    started = true;
    wake.resolve();
  };
  const isHolding = () => states.final === undefined && !closed && clock.monotonic() < holdUntil;

  const source: DrainSource = {
    next: () => nextStep(rows, states, isHolding()),
    async more(signal) {
      if (closed) return false;
      wake = Promise.withResolvers();
      using hold = isHolding() ? clock.timeout(holdUntil - clock.monotonic()) : undefined;
      if (hold !== undefined) onAbort(hold.signal, wake.resolve);
      await abortable(wake.promise, signal);
      return true;
    },
    waitingRows: () => rows.waiting,
  };
  /** Stores the final state as it is to be reported. */
  const end = (state: TaskState) => {
    const verdict = judge({
      state,
      lastRow: rows.lastRow,
      runnerVersion: deps.runnerVersion(),
      cancelled: states.cancelled,
      terminating: reason,
    });
    if (verdict.row !== null) addRow(verdict.row);
    if (verdict.result !== state.result) {
      deps.logger.warn("final state of the runner is not believed", {
        said: Result[state.result],
        reported: Result[verdict.result],
      });
    }
    states.end({ ...state, result: verdict.result });
  };

  return {
    get started() {
      return started;
    },
    get finalStored() {
      return states.final !== undefined;
    },
    get cancelled() {
      return states.cancelled;
    },
    get waiting() {
      return { rows: rows.waiting, states: states.length };
    },
    log({ index, rows: given, noMore }) {
      const isOver = states.final !== undefined;
      if (!isOver && index <= rows.stored) {
        const fresh = given.slice(Number(rows.stored - index));
        for (const row of fresh) if (!rows.add(row)) return undefined;
        if (noMore) holdUntil = clock.monotonic() + HOLD_MS;
        changed();
      }
      const ackIndex = isOver ? index + BigInt(given.length) : rows.stored;
      return create(UpdateLogResponseSchema, { ackIndex });
    },
    state({ state, outputs }) {
      states.addOutputs(outputs);
      if (state !== undefined && states.final === undefined) {
        if (state.result === Result.UNSPECIFIED) states.add(state, rows.stored);
        else end(state);
      }
      changed();
      const result = state?.result || (states.cancelled ? Result.CANCELLED : Result.UNSPECIFIED);
      return create(UpdateTaskResponseSchema, {
        state: { id: state?.id ?? 0n, result },
        sentOutputs: states.outputNames(),
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
      const ended = await drain(source, { ...deps, signal });
      if (ended.kind === "refused") states.cancel();
      return ended.kind === "finished"
        ? { kind: "delivered", result: states.final?.result ?? Result.UNSPECIFIED }
        : ended;
    },
  };
}

/** Runs the outbox to its end; a delivery that was given up is an end, too. Never rejects. */
export async function deliver(
  outbox: Pick<Outbox, "run">,
  signal: AbortSignal,
): Promise<OutboxEnd | GivenUp> {
  try {
    return await outbox.run(signal);
  } catch (error) {
    return { kind: "given_up", error };
  }
}
