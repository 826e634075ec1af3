import type { Result } from "../../controller/model/reason.ts";
import { eventually } from "../support/eventually.ts";
import { executorFolders } from "../faults/executors.ts";
import { REASON } from "../faults/oracle.ts";
import type { Happened } from "./faults.ts";
import type { OutsideFiles } from "./outside.ts";
import type { JobPlan } from "./schedule.ts";
import type { Exit } from "./supervisor.ts";
import type { World } from "./world.ts";

/** One job of a round. */
export interface PlayedJob {
  readonly id: number;
  readonly plan: JobPlan;
  readonly files: OutsideFiles;
}

/** How one job has ended, as seen from outside. */
export type Verdict =
  | { readonly kind: Result; readonly planned: boolean }
  /** The forge's word to the controller was lost on the way: nobody else ever knew of it. */
  | { readonly kind: "forgotten" };

/** Hand-out and loss may lie apart by what the controller needs to store a task. */
const HAND_OUT_MS = 5_000;
/** An executor that has ended is deleted at once; one that nobody hears of, after a minute. */
const NOTHING_LEFT_MS = 120_000;

/**
 * True for a job that was handed out into a fault that loses hand-outs, and of which nothing was heard
 * since: Gitea alone knows of it, and its own time-out ends it.
 */
export async function isForgotten(
  world: World,
  job: PlayedJob,
  happened: readonly Happened[],
): Promise<boolean> {
  const { handedAt } = world.forge.seen(job.id);
  if (handedAt === null || world.forge.rows(job.id).length > 0) return false;
  const inReach = ({ losesHandOuts, from, to }: Happened) =>
    losesHandOuts && handedAt > from - HAND_OUT_MS && handedAt < to + HAND_OUT_MS;
  if (!happened.some(inReach)) return false;
  if ((await job.files.lines()).length > 0) return false;
  // A controller that is being started again may know of it all the same.
  const { ready } = await world.get<{ ready: boolean }>("/api/v1/status")
    .catch(() => ({ ready: false }));
  if (!ready) return false;
  const id = assignmentOf(world, job);
  const known = await world.get(`/api/v1/assignments/${id}`).then(() => true, () => false);
  return !known;
}

/**
 * Judges a job that has ended. Rejects with what is not as it should be: the wrong result, a log that
 * is not whole, a job that ran twice, a failure without a reason.
 */
export async function judgeJob(
  world: World,
  job: PlayedJob,
  options: { readonly happened: readonly Happened[]; readonly forgotten: boolean },
): Promise<Verdict> {
  const { forge, light, pods } = world;
  const { plan, id } = job;
  const { ends, cancelled } = forge.seen(id);
  const [result] = ends;
  const bad = (what: string) =>
    new Error(
      [
        `${assignmentOf(world, job)} (job ${id}, ${ends.join(", ")}): ${what}`,
        ...forge.rows(id).slice(-3).map((row) => `  log: ${row}`),
        ...forge.trace.of(forge.job(id).taskId).slice(-24).map((line) => `  ${line}`),
      ].join("\n"),
    );
  if (result === undefined) throw bad("lost: it has not ended");
  if (ends.length > 1) throw bad("doubled: it has ended more than once");
  const lines = await job.files.lines();
  const count = (word: string) => lines.filter((line) => line === word).length;
  const begins = count("begin");
  if (begins > 1 || count("end") > 1) throw bad(`doubled: it wrote ${lines.join(", ")}`);
  const assignment = assignmentOf(world, job);
  const handed = await pods?.handed(assignment) ?? light?.host.handed(assignment) ?? 0;
  if (handed > 1) throw bad(`doubled: ${handed} executors were handed it`);
  if (options.forgotten) {
    if (result === "failure" && begins === 0) return { kind: "forgotten" };
    throw bad("nobody can have known of it");
  }

  const planned = plan.fails ? "failure" : "success";
  const wasKilled = options.happened.some(({ killed }) =>
    killed.includes(assignmentOf(world, job))
  );
  const rows = forge.rows(id);
  const saysWhy = rows.some((row) => REASON.test(row));
  // Lost after it had told its end, and before Gitea had that: the end counts, one row may be missing.
  const told = wasKilled && rows.at(-1) === toldEnd(planned);
  // Killed when it had ended, and before anybody was told: it fails for another reason than its own.
  const isPlanned = result === planned && count("end") === 1 && (told || !(wasKilled && saysWhy));
  const numbers = rows.flatMap((row) => /^row (\d+)$/.exec(row)?.[1] ?? []).map(Number);
  const odd = numbers.findIndex((number, index) => number !== index + 1);
  if (odd >= 0) throw bad(`its row ${odd + 1} is "row ${numbers[odd]}"`);
  const open = forge.job(id).steps.filter((step) => step.result === null).length;
  if (open > 0) throw bad(`${open} of its steps are open`);
  if (isPlanned) {
    const missing = plan.rows - numbers.length;
    if (missing < 0 || missing > (told ? 1 : 0)) {
      throw bad(`it has ${numbers.length} of ${plan.rows} rows`);
    }
    if (begins !== 1) throw bad(`it began ${begins} times`);
    if (!forge.job(id).sealed) throw bad("its log is not sealed");
    return { kind: result, planned: true };
  }
  if (result === "cancelled" && cancelled) return { kind: "cancelled", planned: false };
  if (result !== "failure" || !wasKilled) {
    throw bad(`it should be ${planned}`);
  }
  if (!saysWhy) throw bad("no row says why");
  return { kind: "failure", planned: false };
}

function toldEnd(result: string): string {
  return `gitea-dynamic-runner: the executor reported ${result} and was lost at that moment; ` +
    "the last row of its log may be missing";
}

/**
 * What is wrong with a controller that ended by itself; nothing when it was starting while the forge
 * did not know its runner, and said so: a wrong registration fails a start at once.
 */
export function judgeExit(exit: Exit, happened: readonly Happened[]): readonly string[] {
  const { code, from, to, ready, lastLines } = exit;
  const explained = !ready && code === WRONG_REGISTRATION.code &&
    lastLines.some((line) => WRONG_REGISTRATION.says.test(line)) &&
    happened.some((fault) => fault.endsStarts && fault.from <= to && fault.to >= from);
  if (explained) return [];
  const when = ready ? "after it had recovered" : "before it had recovered";
  return [
    [`the controller ended by itself, ${when}, with exit code ${code}`, ...lastLines].join("\n  "),
  ];
}

const WRONG_REGISTRATION = { code: 1, says: /unregistered runner/ };

/** Waits until nothing is left of any job; resolves to the seconds that took. */
export async function nothingLeft(world: World): Promise<number> {
  const from = performance.now();
  let left = "nothing was looked at";
  await eventually(async () => {
    left = await whatIsLeft(world).catch((error) => `a failure: ${error}`);
    return left === "";
  }, { what: "nothing to be left", timeoutMs: NOTHING_LEFT_MS, everyMs: 300 }).catch((cause) => {
    throw new Error(`Leaked: after ${NOTHING_LEFT_MS / 1000} s there is still ${left}`, { cause });
  });
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
  const { messages, records } = await world.nats.stored();
  if (messages > 0) return `${messages} messages in the stream`;
  if (records.length > 0) return `the records ${records.join(", ")}`;
  if (world.light !== null) {
    const { size } = world.light.host;
    if (size > 0) return `${size} executors`;
  }
  const onCluster = await world.pods?.left() ?? "";
  if (onCluster !== "") return onCluster;
  const folders = await executorFolders(world.place.runtimeDir);
  if (folders.length > 0) return `the folders ${folders.join(", ")}`;
  const processes = (await world.place.processes()).filter(({ command }) =>
    command !== "" && !/ (main|tests\/chaos\/product)\.ts/.test(command) &&
    !/^\S*nats-server /.test(command)
  );
  return processes.map(({ pid, command }) => `process ${pid} (${command})`).join(", ");
}

/** The assignment of a job's task; of none while it was not handed out. */
export function assignmentOf({ forge }: World, { id }: PlayedJob): string {
  return `gitea-task-${forge.job(id).taskId}`;
}
