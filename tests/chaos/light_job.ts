import {
  FetchTaskResponseSchema,
  LogRowSchema,
  Result,
  StepStateSchema,
  type Task,
  TaskStateSchema,
  UpdateLogRequestSchema,
  UpdateTaskRequestSchema,
  UpdateTaskResponseSchema,
} from "../../proto/gen/runner/v1/messages_pb.ts";
import { create, fromBinary, timestampFromMs, toBinary } from "../../proto/runtime.ts";
import { systemClock } from "../../lib/clock.ts";

/** One call of RunnerService as a runner makes it; rejects with what the gate refuses. */
export type RunnerRpc = (method: string, body: Uint8Array) => Promise<Uint8Array>;

/** How often a runner says that it lives, and hears of a cancel. */
const BEAT_MS = 500;
const POLL_MS = 200;
const STEPS = 3;

/**
 * What a runner does for one job, without a process: asks for it until it comes, does the work of the
 * three steps, and reports. Rejects with the signal's reason.
 */
export async function runLightJob(rpc: RunnerRpc, signal: AbortSignal): Promise<void> {
  const task = await fetchTask(rpc, signal);
  const { file, rows, ms, fails } = workOf(task);
  const write = (line: string) => writeOutside(file, line);
  let sent = 0;
  const started = Date.now();
  const half = rows / 2;

  const report = async (result: Result, done: number): Promise<Result> => {
    const steps = Array.from({ length: STEPS }, (_, index) => {
      const ended = index < done || result !== Result.UNSPECIFIED;
      return create(StepStateSchema, {
        id: BigInt(index),
        result: !ended ? Result.UNSPECIFIED : index < done ? Result.SUCCESS : result,
        ...(index <= done ? { startedAt: timestampFromMs(started) } : {}),
        ...(ended ? { stoppedAt: timestampFromMs(Date.now()) } : {}),
        logIndex: BigInt(index === 0 ? 0 : half),
        logLength: BigInt(index === 0 ? half : index === 2 && ended ? rows - half : 0),
      });
    });
    const state = create(TaskStateSchema, { id: task.id, result, steps });
    const answer = await rpc(
      "UpdateTask",
      toBinary(UpdateTaskRequestSchema, create(UpdateTaskRequestSchema, { state })),
    );
    signal.throwIfAborted();
    return fromBinary(UpdateTaskResponseSchema, answer).state?.result ?? Result.UNSPECIFIED;
  };
  const print = async (upTo: number, noMore: boolean) => {
    const time = timestampFromMs(Date.now());
    const lines = Array.from(
      { length: upTo - sent },
      (_, index) => create(LogRowSchema, { time, content: `row ${sent + index + 1}` }),
    );
    const request = create(UpdateLogRequestSchema, {
      taskId: task.id,
      index: BigInt(sent),
      rows: lines,
      noMore,
    });
    await rpc("UpdateLog", toBinary(UpdateLogRequestSchema, request));
    signal.throwIfAborted();
    sent = upTo;
  };

  await report(Result.UNSPECIFIED, 0);
  await write("begin");
  await print(half, false);
  const until = performance.now() + ms;
  let told = await report(Result.UNSPECIFIED, 1);
  while (performance.now() < until && told !== Result.CANCELLED) {
    await systemClock.sleep(Math.min(BEAT_MS, Math.max(1, until - performance.now())), signal);
    told = await report(Result.UNSPECIFIED, 1);
  }
  if (told === Result.CANCELLED) {
    await print(sent, true);
    await report(Result.CANCELLED, 1);
    return;
  }
  await write("end");
  await print(rows, true);
  await report(fails ? Result.FAILURE : Result.SUCCESS, fails ? 2 : STEPS);
}

/** Whoever shares no files with the oracle writes over HTTP. */
async function writeOutside(file: string, line: string): Promise<void> {
  if (!file.startsWith("http:")) return Deno.writeTextFileSync(file, `${line}\n`, { append: true });
  const response = await fetch(file, { method: "POST", body: line });
  await response.body?.cancel();
  if (!response.ok) throw new Error(`Write "${line}" to "${file}": ${response.status}`);
}

async function fetchTask(rpc: RunnerRpc, signal: AbortSignal): Promise<Task> {
  while (true) {
    const { task } = fromBinary(
      FetchTaskResponseSchema,
      await rpc("FetchTask", new Uint8Array()),
    );
    signal.throwIfAborted();
    if (task !== undefined) return task;
    await systemClock.sleep(POLL_MS, signal);
  }
}

interface Work {
  readonly file: string;
  readonly rows: number;
  readonly ms: number;
  readonly fails: boolean;
}

/** The workflow is the forge's own JSON (see `forge.ts`). */
function workOf({ workflowPayload }: Task): Work {
  const { jobs } = JSON.parse(new TextDecoder().decode(workflowPayload)) as {
    readonly jobs: { readonly work: { readonly env: Readonly<Record<string, string>> } };
  };
  const { FILE = "", ROWS, SECONDS_LONG, CODE } = jobs.work.env;
  return {
    file: FILE,
    rows: Number(ROWS),
    ms: Number(SECONDS_LONG) * 1000,
    fails: CODE !== "0",
  };
}
