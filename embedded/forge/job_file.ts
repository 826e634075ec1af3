import { parseYaml, stringifyYaml } from "../../controller/model/workflow.ts";
import { isObject } from "../../lib/json_object.ts";

/** One job of a workflow, matrix expanded, as the forge queues it. */
export interface JobTemplate {
  /** `owner/name`. */
  readonly repository: string;
  /** File name of the workflow. */
  readonly workflow: string;
  readonly eventName: string;
  /** Key of the job in the workflow. */
  readonly job: string;
  readonly title: string;
  readonly runsOn: readonly string[];
  /** Workflow YAML with exactly this job, as Gitea sends it. */
  readonly payload: string;
}

/** The jobs of one workflow run. */
export interface RunTemplate {
  readonly repository: string;
  readonly workflow: string;
  readonly jobs: readonly JobTemplate[];
}

type Table = Readonly<Record<string, unknown>>;

/**
 * Reads a file of sample workflows: a list of `{repository, file, workflow}`. Throws with the place
 * that is wrong.
 */
export function parseJobFile(text: string): RunTemplate[] {
  const runs = parseYaml(text);
  if (!Array.isArray(runs)) throw new Error("Cannot read the job file: it is not a list");
  return runs.map((run: unknown, index) => {
    const at = `entry ${index + 1}`;
    const { repository, file, workflow } = table(run, at);
    if (typeof repository !== "string" || !/^[\w.-]+\/[\w.-]+$/.test(repository)) {
      throw new Error(`Cannot read the job file: ${at} needs "repository: owner/name"`);
    }
    if (typeof file !== "string") {
      throw new Error(`Cannot read the job file: ${at} needs "file"`);
    }
    const jobs = runOf({ repository, file, workflow: table(workflow, `${at}, workflow`), at });
    return { repository, workflow: file, jobs };
  });
}

function runOf(
  run: { repository: string; file: string; workflow: Table; at: string },
): JobTemplate[] {
  const { jobs, ...rest } = run.workflow;
  const place = `${run.at}, jobs`;
  return Object.entries(table(jobs, place)).flatMap(([key, value]) => {
    const job = table(value, `${place}, ${key}`);
    return matrixOf(job).map((cell) => {
      const filled = table(fill(job, cell), key);
      const single = Object.entries(cell).map(([name, value]) => [name, [value]]);
      const strategy = single.length === 0
        ? {}
        : { strategy: { matrix: Object.fromEntries(single) } };
      const runsOn = labels(filled["runs-on"], `${place}, ${key}`);
      return {
        repository: run.repository,
        workflow: run.file,
        eventName: eventOf(rest.on),
        job: key,
        title: typeof filled.name === "string" ? filled.name : titleOf(key, cell),
        runsOn,
        payload: stringifyYaml({ ...rest, jobs: { [key]: { ...filled, ...strategy } } }),
      };
    });
  });
}

/** Every combination of the matrix; one empty cell without a matrix. */
function matrixOf(job: Table): Readonly<Record<string, string>>[] {
  const { strategy } = job;
  if (strategy === undefined) return [{}];
  const axes = Object.entries(table(table(strategy, "strategy").matrix, "matrix"));
  return axes.reduce<Record<string, string>[]>(
    (cells, [name, values]) =>
      cells.flatMap((cell) =>
        (Array.isArray(values) ? values : [values]).map((v) => ({ ...cell, [name]: String(v) }))
      ),
    [{}],
  );
}

/** Replaces `${{ matrix.name }}` in every text below `value`. */
function fill(value: unknown, cell: Readonly<Record<string, string>>): unknown {
  if (typeof value === "string") {
    return value.replace(
      /\$\{\{\s*matrix\.([\w-]+)\s*\}\}/g,
      (whole, name: string) => cell[name] ?? whole,
    );
  }
  if (Array.isArray(value)) return value.map((item) => fill(item, cell));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fill(item, cell)]));
}

function titleOf(key: string, cell: Readonly<Record<string, string>>): string {
  const values = Object.values(cell);
  return values.length === 0 ? key : `${key} (${values.join(", ")})`;
}

function eventOf(on: unknown): string {
  if (typeof on === "string") return on;
  const first = typeof on === "object" && on !== null ? Object.keys(on)[0] : undefined;
  return first ?? "workflow_dispatch";
}

function labels(value: unknown, at: string): string[] {
  const list = typeof value === "string" ? [value] : value;
  if (!Array.isArray(list) || !list.every((label) => typeof label === "string")) {
    throw new Error(`Cannot read the job file: ${at} needs "runs-on", a label or a list of labels`);
  }
  return list;
}

function table(value: unknown, at: string): Table {
  if (!isObject(value)) throw new Error(`Cannot read the job file: ${at} is not a table`);
  return value;
}
