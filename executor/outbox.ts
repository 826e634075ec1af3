import { clone, create, fromBinary, timestampFromMs, toBinary } from "../proto/runtime.ts";
import {
  LogRowSchema,
  Result,
  type TaskState,
  TaskStateSchema,
  type UpdateLogRequest,
  UpdateLogRequestSchema,
  type UpdateLogResponse,
  UpdateLogResponseSchema,
  type UpdateTaskRequest,
  UpdateTaskRequestSchema,
  type UpdateTaskResponse,
  UpdateTaskResponseSchema,
} from "../proto/gen/runner/v1/messages_pb.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { backoffMs } from "../lib/retry.ts";
import type { RowSpool } from "./row_spool.ts";
import { judge } from "./verdict.ts";

/** What came of one call to the facade. */
export type Sent<T> =
  | { readonly kind: "accepted"; readonly value: T }
  /** No answer, or one that says "later". */
  | { readonly kind: "later"; readonly why: string }
  /** Never. `sealed`: the log takes no more rows, the state may still be taken. */
  | { readonly kind: "refused"; readonly why: string; readonly sealed: boolean };

/** The facade, as the outbox needs it. Both reject only with the signal's reason. */
export interface ReportSender {
  updateLog(request: UpdateLogRequest, call: Call): Promise<Sent<UpdateLogResponse>>;
  updateTask(request: UpdateTaskRequest, call: Call): Promise<Sent<UpdateTaskResponse>>;
}

interface Call {
  readonly signal: AbortSignal;
}

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
 * - The log is sealed only together with the final state, so that a last row can still be added.
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

const MAX_ROWS = 1000;
/** Of one call, so that it passes a reverse proxy that takes 1 MiB. */
const MAX_BYTES = 512 * 1024;
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
  const { taskId, spool, clock, logger } = deps;
  /** Rows stored, and rows the facade has: the spool holds what lies between. */
  let stored = 0n;
  let acked = 0n;
  let lastRow: string | undefined;
  let states: readonly Waiting[] = [];
  let final: TaskState | undefined;
  let sealed = false;
  let cancelled = false;
  let closed = false;
  let started = false;
  let reason: string | undefined;
  const outputs = new Map<string, string>();
  const sentOutputs = new Set<string>();
  let newest = { bytes: "", outputs: 0, at: 0 };
  let wake = Promise.withResolvers<void>();

  const changed = () => {
    started = true;
    wake.resolve();
  };
  const addRow = (content: string, bytes: Uint8Array): boolean => {
    if (!spool.push(bytes)) return false;
    stored++;
    if (content !== "") lastRow = content;
    return true;
  };

  const sendRows = async (seal: boolean, signal: AbortSignal): Promise<Sent<Progress>> => {
    const rows = spool.peek(MAX_ROWS, MAX_BYTES).map((bytes) => fromBinary(LogRowSchema, bytes));
    const noMore = seal && rows.length === spool.length;
    const request = create(UpdateLogRequestSchema, { taskId, index: acked, rows, noMore });
    const sent = await deps.sender.updateLog(request, { signal });
    if (sent.kind === "refused" && sent.sealed) {
      logger.warn("log is sealed, rows are lost", { rows: spool.length, why: sent.why });
      spool.drop(spool.length);
      acked = stored;
      sealed = true;
      return { kind: "accepted", value: "more" };
    }
    if (sent.kind !== "accepted") return sent;
    const end = acked + BigInt(rows.length);
    const ack = sent.value.ackIndex > end ? end : sent.value.ackIndex;
    if (ack < acked || (ack === acked && rows.length > 0)) {
      return { kind: "later", why: `facade has ${ack} of ${end} rows` };
    }
    spool.drop(Number(ack - acked));
    acked = ack;
    if (noMore && ack === end) sealed = true;
    return { kind: "accepted", value: "more" };
  };

  /** Sends a state with the outputs that are new; in parts, not final ones, if those are large. */
  const sendState = async (
    state: TaskState,
    signal: AbortSignal,
  ): Promise<Sent<"all" | "part">> => {
    const request = create(UpdateTaskRequestSchema, { state: clone(TaskStateSchema, state) });
    const unsent = [...outputs].filter(([key]) => !sentOutputs.has(key));
    let bytes = 0;
    for (const [key, value] of unsent) {
      bytes += value.length;
      if (bytes > MAX_BYTES && value.length < bytes) break;
      request.outputs[key] = value;
    }
    const keys = Object.keys(request.outputs);
    const part = keys.length < unsent.length;
    if (part && request.state !== undefined) {
      request.state.result = Result.UNSPECIFIED;
      delete request.state.stoppedAt;
    }
    const sent = await deps.sender.updateTask(request, { signal });
    if (sent.kind !== "accepted") return sent;
    for (const key of keys) sentOutputs.add(key);
    const result = sent.value.state?.result ?? Result.UNSPECIFIED;
    if (result !== Result.UNSPECIFIED && state !== final) cancelled = true;
    return { kind: "accepted", value: part ? "part" : "all" };
  };

  /** The next thing that must go up, or undefined when there is nothing. */
  const next = (): ((signal: AbortSignal) => Promise<Sent<Progress>>) | undefined => {
    const [first] = states;
    if (first !== undefined && first.after <= acked) {
      return async (signal) => {
        const sent = await sendState(first.state, signal);
        if (sent.kind === "accepted") states = states.filter((waiting) => waiting !== first);
        return sent.kind === "accepted" ? { kind: "accepted", value: "more" } : sent;
      };
    }
    if (spool.length > 0 || (final !== undefined && !sealed)) {
      return (signal) => sendRows(final !== undefined, signal);
    }
    const last = final;
    if (last === undefined) return undefined;
    return async (signal) => {
      const sent = await sendState(last, signal);
      if (sent.kind !== "accepted") return sent;
      return { kind: "accepted", value: sent.value === "all" ? "finished" : "more" };
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
      if (!isRepeated(state)) states = [...states.slice(0, 1), { state, after: stored }];
      return;
    }
    const verdict = judge({
      state,
      lastRow,
      runnerVersion: deps.runnerVersion(),
      cancelled,
      terminating: reason,
    });
    if (verdict.row !== undefined) {
      const row = create(LogRowSchema, {
        time: timestampFromMs(clock.now()),
        content: verdict.row,
      });
      addRow(verdict.row, toBinary(LogRowSchema, row));
    }
    if (verdict.result !== state.result) {
      logger.warn("final state of the runner is not believed", {
        said: Result[state.result],
        reported: Result[verdict.result],
      });
    }
    final = { ...state, result: verdict.result };
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
      return { rows: spool.length, states: states.length + (final === undefined ? 0 : 1) };
    },
    log(request) {
      if (final === undefined && request.index <= stored) {
        const fresh = request.rows.slice(Number(stored - request.index));
        for (const row of fresh) {
          if (!addRow(row.content, toBinary(LogRowSchema, row))) return undefined;
        }
        changed();
      }
      const ackIndex = final === undefined ? stored : request.index + BigInt(request.rows.length);
      return create(UpdateLogResponseSchema, { ackIndex });
    },
    state(request) {
      for (const [key, value] of Object.entries(request.outputs)) {
        // As Gitea does: the first value of a key stays.
        if (!outputs.has(key)) outputs.set(key, value);
      }
      store(request.state);
      changed();
      const result = request.state?.result || (cancelled ? Result.CANCELLED : Result.UNSPECIFIED);
      return create(UpdateTaskResponseSchema, {
        state: { id: request.state?.id ?? 0n, result },
        sentOutputs: [...outputs.keys()],
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
          await settled(wake.promise, signal);
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
            failures++;
            logger.warn("facade does not take a report now", {
              why: sent.why,
              attempt: failures,
              rows: spool.length,
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

/** Waits for `event`; rejects with the signal's reason. */
async function settled(event: Promise<void>, signal: AbortSignal): Promise<void> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    await Promise.race([event, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
