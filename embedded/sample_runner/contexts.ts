import { Result } from "../../proto/gen/runner/v1/messages_pb.ts";
import type { Context } from "./expressions.ts";
import type { JobRun, Progress } from "./run_job.ts";

/** The event that started the run, as JSON. */
export function eventOf(run: JobRun): string {
  return JSON.stringify(contextOf(run)["event"] ?? {});
}

function contextOf(run: JobRun): Readonly<Record<string, unknown>> {
  return run.task.context ?? {};
}

/** What `${{ }}` can look into. */
export function expressionContext(run: JobRun, progress: Progress): Context {
  const github: Record<string, string> = {};
  for (const [name, value] of Object.entries(contextOf(run))) {
    if (typeof value === "string" || typeof value === "number") github[name] = String(value);
  }
  const needs = Object.entries(run.task.needs).map(([name, need]): [string, Context] => [name, {
    result: Result[need.result].toLowerCase(),
    outputs: need.outputs,
  }]);
  const urls = { server_url: run.address, api_url: `${run.address}/api/v1` };
  return {
    github: { ...github, ...urls },
    gitea: { ...github, ...urls },
    secrets: run.task.secrets,
    vars: run.task.vars,
    needs: Object.fromEntries(needs),
    matrix: run.job.matrix,
    env: { ...run.job.env, ...progress.env },
    steps: progress.steps,
    job: { status: progress.status },
  };
}

/** The variables that every step gets. */
export function githubVariables(
  run: JobRun,
  folders: { readonly workspace: string; readonly temp: string },
): Record<string, string> {
  const context = contextOf(run);
  const variables: Record<string, string> = {
    CI: "true",
    GITHUB_ACTIONS: "true",
    GITEA_ACTIONS: "true",
    GITHUB_WORKSPACE: folders.workspace,
    GITHUB_EVENT_PATH: `${folders.temp}/event.json`,
    GITHUB_SERVER_URL: run.address,
    GITHUB_API_URL: `${run.address}/api/v1`,
    RUNNER_TEMP: folders.temp,
    RUNNER_OS: "Linux",
  };
  const names = [
    "actor",
    "event_name",
    "job",
    "ref",
    "ref_name",
    "ref_type",
    "repository",
    "repository_owner",
    "run_attempt",
    "run_id",
    "run_number",
    "sha",
    "workflow",
  ];
  for (const name of names) {
    const value = context[name];
    if (value !== undefined) variables[`GITHUB_${name.toUpperCase()}`] = String(value);
  }
  return variables;
}
