import {
  type LogRowSchema,
  Result,
  type StepState,
  StepStateSchema,
} from "../../proto/gen/runner/v1/messages_pb.ts";
import { create, type MessageInitShape, timestampFromMs } from "../../proto/runtime.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Masks } from "./masks.ts";
import type { Rpc } from "./rpc.ts";

/** Sends rows and states of one task. */
export interface Reporter {
  /** Aborts when the server says that the task has ended. */
  readonly cancelled: AbortSignal;
  /** Adds rows to the log when there is room: waits while too many are unsent. */
  log(...lines: readonly string[]): Promise<void>;
  /** From the abort of this signal on rows that find no room within some seconds are dropped. */
  endWith(signal: AbortSignal): void;
  /** The step begins: rows from here on are its own. */
  stepStarts(index: number): void;
  stepEnds(index: number, result: Result): void;
  setOutput(name: string, value: string): void;
  /** Sends what is new each half second, and a state at least each two seconds. */
  run(signal: AbortSignal): Promise<void>;
  /** Sends everything, seals the log, then sends the final state; repeated for up to a minute. */
  close(result: Result): Promise<void>;
}

/** What it works with. */
export interface ReporterDeps {
  readonly rpc: Rpc;
  readonly clock: Clock;
  readonly masks: Masks;
  readonly taskId: bigint;
  readonly steps: number;
}

const FLUSH_MS = 500;
const STATE_MS = 2000;
const ROOM_MS = 50;
const BATCH = 1000;
const MAX_UNSENT = 5000;
const CLOSE_TRIES = 12;
/** A call that has no answer by then will have none. */
const CALL_MS = 10_000;
/** After the end of the job, for rows that find no room. */
const LATE_MS = 5_000;

/** Makes a {@link Reporter}. */
export function createReporter(deps: ReporterDeps): Reporter {
  const { rpc, clock, masks, taskId } = deps;
  const cancel = new AbortController();
  const startedAt = timestampFromMs(clock.now());
  const steps = Array.from(
    { length: deps.steps },
    (_, id) => create(StepStateSchema, { id: BigInt(id) }),
  );
  const outputs: Record<string, string> = {};
  let unsent: MessageInitShape<typeof LogRowSchema>[] = [];
  let acked = 0;
  let changed = true;
  let stateAt = 0;
  let end: AbortSignal | null = null;
  let lateSince: number | null = null;

  const rows = () => acked + unsent.length;
  const sendRows = async (noMore: boolean, signal: AbortSignal) => {
    do {
      const batch = unsent.slice(0, BATCH);
      const last = noMore && batch.length === unsent.length;
      if (batch.length === 0 && !last) return;
      const answer = await rpc.updateLog({
        taskId,
        index: BigInt(acked),
        rows: batch,
        noMore: last,
      }, { signal });
      const got = Math.min(Number(answer.ackIndex) - acked, batch.length);
      if (got < batch.length) throw new Error(`Send log: ${got} of ${batch.length} rows taken`);
      unsent = unsent.slice(got);
      acked += got;
    } while (unsent.length > 0);
  };
  const sendState = async (result: Result, signal: AbortSignal) => {
    changed = false;
    stateAt = clock.monotonic();
    const ended = result === Result.UNSPECIFIED ? {} : { stoppedAt: timestampFromMs(clock.now()) };
    const state = { id: taskId, result, startedAt, steps: [...steps], ...ended };
    const answer = await rpc.updateTask({ state, outputs }, { signal });
    const told = answer.state?.result ?? Result.UNSPECIFIED;
    if (result === Result.UNSPECIFIED && told === Result.CANCELLED) {
      cancel.abort("the job was cancelled");
    }
  };
  const change = (index: number, part: Partial<StepState>) => {
    const step = steps[index];
    if (step !== undefined) Object.assign(step, part);
    changed = true;
  };

  /** The job has ended, and nobody has taken rows for some seconds. */
  const isTooLate = () => {
    if (end?.aborted !== true) return false;
    lateSince ??= clock.monotonic();
    return clock.monotonic() - lateSince >= LATE_MS;
  };

  return {
    cancelled: cancel.signal,
    async log(...lines) {
      const time = timestampFromMs(clock.now());
      while (unsent.length > MAX_UNSENT && !cancel.signal.aborted) {
        if (isTooLate()) return;
        await clock.sleep(ROOM_MS);
      }
      for (const line of lines) unsent.push({ time, content: masks.apply(line) });
    },
    endWith(signal) {
      end = signal;
    },
    stepStarts(index) {
      change(index, { startedAt: timestampFromMs(clock.now()), logIndex: BigInt(rows()) });
    },
    stepEnds(index, result) {
      const step = steps[index];
      change(index, {
        result,
        stoppedAt: timestampFromMs(clock.now()),
        ...(step?.startedAt === undefined ? {} : { logLength: BigInt(rows()) - step.logIndex }),
      });
    },
    setOutput(name, value) {
      outputs[name] = value;
    },
    async run(signal) {
      /** What fails is tried again with the next round. */
      const within = async (send: (signal: AbortSignal) => Promise<void>) => {
        using limit = clock.timeout(CALL_MS);
        return await send(AbortSignal.any([signal, limit.signal])).then(() => true, () => false);
      };
      while (!signal.aborted) {
        await within((stop) => sendRows(false, stop));
        // Also when no row is taken: its answer alone says that the job has ended.
        if (changed || clock.monotonic() - stateAt > STATE_MS) {
          const sent = await within((stop) => sendState(Result.UNSPECIFIED, stop));
          if (!sent) changed = true;
        }
        await clock.sleep(FLUSH_MS, signal).catch(() => {});
      }
    },
    async close(result) {
      for (let attempt = 1;; attempt++) {
        using limit = clock.timeout(10_000);
        try {
          await sendRows(true, limit.signal);
          return await sendState(result, limit.signal);
        } catch (error) {
          if (attempt >= CLOSE_TRIES) throw error;
          await clock.sleep(Math.min(5000, 250 * 2 ** attempt));
        }
      }
    },
  };
}
