import type { Result } from "../../controller/model/reason.ts";
import { eventually } from "../support/eventually.ts";
import { executorFolders } from "./executors.ts";
import type { OutsideJob } from "./side.ts";
import type { World } from "./world.ts";

/** How a job may have ended; the figures are seconds after {@link checkJob} was asked. */
export interface Expected {
  /** Exactly one of these. */
  readonly results: readonly Result[];
  /** How often it may have begun: `[1]`, or `[0, 1]` where nobody can know. */
  readonly begins: readonly number[];
  readonly withinMs: number;
  /** A row of its log that says why; only looked for when it did not succeed. */
  readonly reason?: RegExp;
  /** The forge alone knows of it (its own time-out ended it): no row, no steps. */
  readonly forgotten?: boolean;
}

/** The controller's own words at the end of a job's log. */
export const REASON = /^gitea-dynamic-runner: .*\b(executor|runner|job)\b/;

/**
 * Looks from outside at how a job has ended: result, how often it ran, its log, its steps. Resolves
 * to the seconds until its end; rejects with what is not as it should be.
 */
export async function checkJob(
  world: World,
  job: OutsideJob,
  expected: Expected,
): Promise<{ readonly result: Result; readonly seconds: number }> {
  const { side } = world;
  const from = performance.now();
  const result = await eventually(async () => await side.result(job) ?? undefined, {
    what: `the end of job ${job.id}`,
    timeoutMs: expected.withinMs,
    everyMs: 100,
  });
  const seconds = (performance.now() - from) / 1000;
  if (!expected.results.includes(result)) {
    throw new Error(
      `Job ${job.id} ended as ${result}, not ${expected.results.join(" or ")}; ` +
        `its last rows: ${(await side.rows(job)).slice(-4).join(" | ")}`,
    );
  }
  const lines = await job.lines();
  const begins = lines.filter((line) => line === "begin").length;
  const ends = lines.filter((line) => line === "end").length;
  if (!expected.begins.includes(begins) || begins > 1 || ends > begins) {
    throw new Error(`Job ${job.id} began ${begins} times and ended ${ends} times`);
  }
  if (result === "success" && (begins !== 1 || ends !== 1)) {
    throw new Error(`Job ${job.id} is green, but wrote: ${lines.join(", ")}`);
  }
  if (!expected.forgotten) await checkLog(world, job, { ...expected, result });
  return { result, seconds };
}

async function checkLog(
  { side }: World,
  job: OutsideJob,
  expected: Pick<Expected, "reason"> & { readonly result: Result },
): Promise<void> {
  const { result, reason } = expected;
  const whole = await eventually(async () => {
    const rows = await side.rows(job);
    if (result === "success") return numbersOf(rows).length >= job.rows && rows;
    return reason === undefined || rows.some((row) => reason.test(row)) ? rows : undefined;
  }, {
    what: result === "success" ? "the whole log" : `a row that says why (${reason})`,
    timeoutMs: 10_000,
    everyMs: 100,
  }).catch(async (cause) => {
    const last = (await side.rows(job)).slice(-4).join(" | ");
    throw new Error(`Read the log of job ${job.id}; its last rows: ${last}`, { cause });
  });
  const numbers = numbersOf(whole);
  const odd = numbers.findIndex((number, index) => number !== index + 1);
  if (odd >= 0 || numbers.length > job.rows) {
    throw new Error(`Row ${odd + 1} of job ${job.id} is "row ${numbers[odd]}"`);
  }
  const open = await side.openSteps(job);
  if (open > 0) throw new Error(`Job ${job.id} has ended with ${open} open steps`);
}

/**
 * Waits until nothing is left of any job: slots, stream, records, executors and their folders; and
 * nothing has waited without a reason. Resolves to the seconds that took.
 */
export async function checkNothingLeft(world: World, withinMs: number): Promise<number> {
  const from = performance.now();
  let left = "nothing was looked at";
  await eventually(async () => {
    left = await whatIsLeft(world);
    return left === "";
  }, { what: "nothing to be left", timeoutMs: withinMs, everyMs: 200 }).catch((cause) => {
    throw new Error(`After ${withinMs / 1000} s there is still ${left}`, { cause });
  });
  const [complaint] = world.watcher.complaints;
  if (complaint !== undefined) throw new Error(complaint);
  return (performance.now() - from) / 1000;
}

async function whatIsLeft(world: World): Promise<string> {
  const { items } = await world.get<
    { items: readonly { name: string; used: number; waiting: number; unknown: number }[] }
  >("/api/v1/backends");
  for (const { name, used, waiting, unknown } of items) {
    if (used + waiting + unknown > 0) {
      return `${name}: ${used} used, ${waiting} waiting, ${unknown} unknown`;
    }
  }
  const { messages, records } = await world.stored();
  if (messages > 0) return `${messages} messages in the stream`;
  if (records.length > 0) return `the records ${records.join(", ")}`;
  const folders = await executorFolders(world.place.runtimeDir);
  if (folders.length > 0) return `the folders ${folders.join(", ")}`;
  const processes = (await world.place.processes()).filter(({ command }) =>
    command !== "" && !command.includes("main.ts")
  );
  return processes.map(({ pid, command }) => `process ${pid} (${command})`).join(", ");
}

function numbersOf(rows: readonly string[]): number[] {
  return rows.flatMap((row) => {
    const number = /^row (\d+)$/.exec(row)?.[1];
    return number === undefined ? [] : [Number(number)];
  });
}
