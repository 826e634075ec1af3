import { parseYaml } from "../../controller/model/workflow.ts";
import { objectOrEmpty } from "../../lib/json_object.ts";

/** One step as its author wrote it, expressions not yet evaluated. */
export interface Step {
  readonly id: string | undefined;
  readonly name: string;
  readonly run: string | undefined;
  readonly uses: string | undefined;
  readonly condition: string | undefined;
  readonly env: Readonly<Record<string, string>>;
  readonly shell: string | undefined;
  readonly directory: string | undefined;
  readonly continueOnError: boolean;
  readonly timeoutMs: number | undefined;
}

/** The one job of a task. */
export interface Job {
  readonly env: Readonly<Record<string, string>>;
  readonly matrix: Readonly<Record<string, string>>;
  readonly outputs: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly steps: readonly Step[];
}

const JOB_MINUTES = 360;

/**
 * Reads the job with that key from a task's workflow payload (YAML with exactly one job, matrix
 * values already chosen). Throws an `Error` for the job's author when it cannot be run.
 */
export function readJob(payload: Uint8Array, key: string): Job {
  const workflow = objectOrEmpty(parseYaml(new TextDecoder().decode(payload)));
  const job = objectOrEmpty(objectOrEmpty(workflow["jobs"])[key]);
  if (!Array.isArray(job["steps"])) throw new Error(`Read job "${key}": it has no steps`);
  const defaults = {
    ...objectOrEmpty(objectOrEmpty(workflow["defaults"])["run"]),
    ...objectOrEmpty(objectOrEmpty(job["defaults"])["run"]),
  };
  return {
    env: { ...strings(workflow["env"]), ...strings(job["env"]) },
    matrix: matrixOf(job),
    outputs: strings(job["outputs"]),
    timeoutMs: minutes(job["timeout-minutes"]) ?? JOB_MINUTES * 60_000,
    steps: job["steps"].map((step) => readStep(objectOrEmpty(step), defaults)),
  };
}

function readStep(
  step: Readonly<Record<string, unknown>>,
  defaults: Readonly<Record<string, unknown>>,
): Step {
  const run = text(step["run"]);
  const uses = text(step["uses"]);
  return {
    id: text(step["id"]),
    name: text(step["name"]) ?? `Run ${run?.trim().split("\n")[0] ?? uses ?? "nothing"}`,
    run,
    uses,
    condition: text(step["if"]),
    env: strings(step["env"]),
    shell: text(step["shell"]) ?? text(defaults["shell"]),
    directory: text(step["working-directory"]) ?? text(defaults["working-directory"]),
    continueOnError: text(step["continue-on-error"]) === "true",
    timeoutMs: minutes(step["timeout-minutes"]),
  };
}

/** Gitea leaves one value in each list of the matrix. */
function matrixOf(job: Readonly<Record<string, unknown>>): Record<string, string> {
  const matrix: Record<string, string> = {};
  for (
    const [name, value] of Object.entries(objectOrEmpty(objectOrEmpty(job["strategy"])["matrix"]))
  ) {
    const chosen = text(Array.isArray(value) ? value[0] : value);
    if (chosen !== undefined) matrix[name] = chosen;
  }
  return matrix;
}

function strings(value: unknown): Record<string, string> {
  const entries = Object.entries(objectOrEmpty(value)).map((
    [name, item],
  ) => [name, text(item) ?? ""]);
  return Object.fromEntries(entries);
}

function text(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "boolean" ? String(value) : undefined;
}

function minutes(value: unknown): number | undefined {
  const count = Number(text(value) ?? "x");
  return Number.isFinite(count) && count > 0 ? count * 60_000 : undefined;
}
