import { Result, type Task } from "../../proto/gen/runner/v1/messages_pb.ts";
import type { Clock } from "../../lib/clock.ts";
import {
  type Context,
  expand,
  expandAll,
  ExpressionError,
  type JobStatus,
  shouldRun,
} from "./expressions.ts";
import { eventOf, expressionContext, githubVariables } from "./contexts.ts";
import { readOutputs } from "./file_commands.ts";
import type { Job, Step } from "./job.ts";
import type { Masks } from "./masks.ts";
import type { Reporter } from "./reporter.ts";
import { runScript } from "./shell.ts";

/** What a job runs with. */
export interface JobRun {
  readonly task: Task;
  readonly job: Job;
  readonly reporter: Reporter;
  readonly masks: Masks;
  readonly clock: Clock;
  /** What steps inherit; `GITHUB_*` is added. */
  readonly env: Readonly<Record<string, string>>;
  /** Wins over the job's own `env`. */
  readonly overrides: Readonly<Record<string, string>>;
  /** Gitea's URL, without a trailing slash. */
  readonly address: string;
  /** An empty folder. */
  readonly folder: string;
  /** Aborts when the runner is made to stop; the reason is text. */
  readonly stop: AbortSignal;
}

/** What the steps so far have left. */
export interface Progress {
  status: JobStatus;
  /** From `GITHUB_ENV`. */
  env: Record<string, string>;
  /** From `GITHUB_PATH`, the newest first. */
  paths: string[];
  readonly steps: Record<string, Context>;
}

/**
 * Runs the steps of a job one after another, as their conditions say, and resolves to the job's
 * result. Rows, states and outputs go to the reporter. Rejects only when the disk fails.
 */
export async function runJob(run: JobRun): Promise<Result> {
  const { job, reporter } = run;
  const folders = { workspace: `${run.folder}/workspace`, temp: `${run.folder}/temp` };
  await Deno.mkdir(folders.workspace, { recursive: true });
  await Deno.mkdir(folders.temp, { recursive: true });
  await Deno.writeTextFile(
    `${folders.temp}/event.json`,
    eventOf(run),
  );
  const progress: Progress = { status: "success", env: {}, paths: [], steps: {} };
  using limit = run.clock.timeout(job.timeoutMs);
  const ending = AbortSignal.any([reporter.cancelled, run.stop, limit.signal]);
  reporter.endWith(ending);

  for (const [index, step] of job.steps.entries()) {
    if (ending.aborted && progress.status !== "cancelled") {
      // A step that was cut has said so.
      if (progress.status === "success") await reporter.log(`Error: ${endText(ending.reason)}`);
      progress.status = reporter.cancelled.aborted ? "cancelled" : "failure";
    }
    const result = await runStep(run, { step, index, progress, folders, ending });
    reporter.stepEnds(index, result);
    if (result === Result.FAILURE && !step.continueOnError && progress.status === "success") {
      progress.status = "failure";
    }
    if (result === Result.CANCELLED) progress.status = "cancelled";
    if (step.id !== undefined) {
      const conclusion = step.continueOnError ? Result.SUCCESS : result;
      progress.steps[step.id] = {
        outputs: {},
        ...progress.steps[step.id],
        outcome: Result[result].toLowerCase(),
        conclusion: Result[conclusion].toLowerCase(),
      };
    }
  }
  if (ending.aborted && progress.status === "success") {
    progress.status = reporter.cancelled.aborted ? "cancelled" : "failure";
  }
  for (const [name, text] of Object.entries(job.outputs)) {
    reporter.setOutput(name, expand(text, expressionContext(run, progress)));
  }
  await reporter.log(`Job ${progress.status === "success" ? "succeeded" : progress.status}`);
  return { success: Result.SUCCESS, failure: Result.FAILURE, cancelled: Result.CANCELLED }[
    progress.status
  ];
}

interface StepRun {
  readonly step: Step;
  readonly index: number;
  readonly progress: Progress;
  readonly folders: { readonly workspace: string; readonly temp: string };
  readonly ending: AbortSignal;
}

async function runStep(run: JobRun, one: StepRun): Promise<Result> {
  const { step, progress, index } = one;
  const { reporter } = run;
  try {
    if (!shouldRun(step.condition, progress.status)) return Result.SKIPPED;
    reporter.stepStarts(index);
    const context = expressionContext(run, progress);
    await reporter.log(`Run ${expand(step.name, context).replace(/^Run /, "")}`);
    if (step.run === undefined) {
      await reporter.log(
        `Error: "uses: ${step.uses}" needs the official runner: this one runs "run:" steps only`,
      );
      return Result.FAILURE;
    }
    return await runShell(run, { ...one, text: expand(step.run, context), context });
  } catch (error) {
    if (!(error instanceof ExpressionError) && !(error instanceof Deno.errors.NotFound)) {
      throw error;
    }
    await reporter.log(`Error: ${error.message}`);
    return Result.FAILURE;
  }
}

async function runShell(
  run: JobRun,
  one: StepRun & { readonly text: string; readonly context: Context },
): Promise<Result> {
  const { step, progress, folders, context } = one;
  const { reporter, clock, masks } = run;
  const file = (name: string) => `${folders.temp}/${name}-${one.index}`;
  const files = {
    GITHUB_OUTPUT: file("output"),
    GITHUB_ENV: file("env"),
    GITHUB_PATH: file("path"),
    GITHUB_STEP_SUMMARY: file("summary"),
    GITHUB_STATE: file("state"),
  };
  for (const path of Object.values(files)) await Deno.writeTextFile(path, "");
  const basics = { ...githubVariables(run, folders), ...files };
  const env: Record<string, string> = {
    ...run.env,
    ...expandAll(run.job.env, context),
    ...run.overrides,
    ...progress.env,
    ...expandAll(step.env, context),
    ...basics,
  };
  env["PATH"] = [...progress.paths, env["PATH"] ?? "/usr/bin:/bin"].join(":");
  const timer = step.timeoutMs === undefined ? undefined : clock.timeout(step.timeoutMs);
  // Steps that begin after the end, because of always(), are not cut off by it once more.
  const cut = one.ending.aborted ? [] : [one.ending];
  const signal = AbortSignal.any([...cut, ...(timer === undefined ? [] : [timer.signal])]);
  try {
    const code = await runScript({
      text: one.text,
      shell: step.shell,
      env,
      temp: folders.temp,
      cwd: step.directory === undefined
        ? folders.workspace
        : new URL(expand(step.directory, context), `file://${folders.workspace}/`).pathname,
      onLine: async (line) => {
        const mask = /^::add-mask::(.*)$/.exec(line)?.[1];
        if (mask !== undefined) masks.add(mask);
        else await reporter.log(line);
      },
    }, { signal, clock });
    const outputs = readOutputs(await Deno.readTextFile(files.GITHUB_OUTPUT));
    if (step.id !== undefined) progress.steps[step.id] = { outputs };
    Object.assign(progress.env, readOutputs(await Deno.readTextFile(files.GITHUB_ENV)));
    const added = (await Deno.readTextFile(files.GITHUB_PATH)).split("\n");
    progress.paths = [...added.filter((path) => path !== ""), ...progress.paths];
    if (signal.aborted) {
      await reporter.log(`Error: ${endText(signal.reason)}`);
      return reporter.cancelled.aborted ? Result.CANCELLED : Result.FAILURE;
    }
    if (code === 0) return Result.SUCCESS;
    await reporter.log(`Error: the step ended with exit code ${code}`);
    return Result.FAILURE;
  } finally {
    timer?.[Symbol.dispose]();
  }
}

function endText(reason: unknown): string {
  return typeof reason === "string" ? reason : "the time limit is over";
}
