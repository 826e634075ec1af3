import type { GiteaApi, RunView, StepView } from "../support/gitea_api.ts";
import type { JobExpectation, Scenario, StepExpectation } from "./expectations.ts";
import type { StartedRun } from "./start_run.ts";

/** What stands for the placeholders of the expectations. */
export interface Stand {
  readonly rootUrl: string;
  /** Identity of the job of that key, or `none`. */
  readonly spiffeId: (jobKey: string) => string;
  /** Whether the product's own rules about jobs hold. */
  readonly refuses: boolean;
}

/**
 * Compares an ended run with what was expected of it and resolves to the differences, in plain words;
 * none is what one hopes for. Reads every job, step and row from Gitea.
 */
export async function differences(
  api: GiteaApi,
  scenario: Scenario,
  seen: { readonly started: StartedRun; readonly view: RunView; readonly stand: Stand },
): Promise<string[]> {
  const { started, view, stand } = seen;
  const found: string[] = [];
  const refused = stand.refuses && scenario.jobs.some((job) => job.refused !== undefined);
  const ending = refused ? "failure" : scenario.ending;
  if (view.status !== ending) found.push(`the run is ${view.status}, not ${ending}`);
  const names = view.jobs.map((job) => job.name).sort();
  const expectedNames = scenario.jobs.map((job) => job.name).sort();
  if (names.join("|") !== expectedNames.join("|")) {
    return [...found, `its jobs are ${names.join(", ")}, not ${expectedNames.join(", ")}`];
  }
  for (const expected of scenario.jobs) {
    const job = view.jobs.find((one) => one.name === expected.name);
    if (job === undefined) continue;
    const steps = await api.steps(started.repository, started.run, job.id);
    const said = stand.refuses && expected.refused !== undefined
      ? ofRefused(expected, { status: job.status, steps })
      : ofJob(expected, { status: job.status, steps, stand });
    found.push(...said.map((line) => `job "${expected.name}": ${line}`));
  }
  return found;
}

function ofRefused(
  expected: JobExpectation,
  seen: { readonly status: string; readonly steps: readonly StepView[] },
): string[] {
  const found: string[] = [];
  if (seen.status !== "failure") found.push(`is ${seen.status}, not refused`);
  const rows = seen.steps.flatMap((step) => step.lines);
  if (!rows.some((row) => row.includes(expected.refused ?? ""))) {
    found.push(`does not say "${expected.refused}" but ${shorten(rows)}`);
  }
  for (const step of seen.steps.slice(1, -1)) {
    if (step.status === "success" || step.status === "running") {
      found.push(`step "${step.name}" is ${step.status}, though nothing ran`);
    }
  }
  return found;
}

function ofJob(
  expected: JobExpectation,
  seen: {
    readonly status: string;
    readonly steps: readonly StepView[];
    readonly stand: Stand;
  },
): string[] {
  const found: string[] = [];
  if (seen.status !== expected.ending) found.push(`is ${seen.status}, not ${expected.ending}`);
  const names = seen.steps.slice(1, -1).map((step) => step.name);
  const expectedNames = expected.steps.map((step) => step.name);
  if (names.join("|") !== expectedNames.join("|")) {
    return [...found, `its steps are ${shorten(names)}, not ${shorten(expectedNames)}`];
  }
  if (expected.steps.length === 0) return found;
  expected.steps.forEach((step, index) => {
    const view = seen.steps[index + 1];
    if (view !== undefined) {
      found.push(...ofStep(step, { view, stand: seen.stand, job: expected.name }));
    }
  });
  return [...found, ...ofFrame(expected, seen.steps)];
}

function ofStep(
  expected: StepExpectation,
  seen: { readonly view: StepView; readonly stand: Stand; readonly job: string },
): string[] {
  const found: string[] = [];
  if (seen.view.status !== expected.ending) {
    found.push(`step "${expected.name}" is ${seen.view.status}, not ${expected.ending}`);
  }
  const rows = ownRows(seen.view.lines);
  const jobKey = seen.job.split(" ", 1)[0] ?? seen.job;
  const lines = expected.lines.map((line) =>
    line.replaceAll("{root}", seen.stand.rootUrl)
      .replaceAll("{spiffe}", seen.stand.spiffeId(jobKey))
  );
  const at = Math.max(rows.length, lines.length) === 0
    ? -1
    : Array.from({ length: Math.max(rows.length, lines.length) })
      .findIndex((_, index) => rows[index] !== lines[index]);
  if (at >= 0) {
    found.push(
      `step "${expected.name}" has ${rows.length} rows of its own, ${lines.length} expected; row ${
        at + 1
      } is ${shorten(rows.slice(at, at + 1))}, not ${shorten(lines.slice(at, at + 1))}`,
    );
  }
  return found;
}

/** Gitea's two steps around the job's own: where they begin and end depends on every index between. */
function ofFrame(expected: JobExpectation, steps: readonly StepView[]): string[] {
  const found: string[] = [];
  const setUp = steps[0]?.lines ?? [];
  const received = setUp.filter((row) => /received task \d+ of job /.test(row)).length;
  if (received !== 1) found.push(`"Set up job" tells ${received} times of a received task`);
  // Of a cancelled job Gitea shows the whole log as that of "Set up job".
  if (expected.ending === "cancelled") return found;
  const first = `Run Main ${expected.steps[0]?.name}`;
  if (setUp.at(-1) !== first) {
    found.push(`"Set up job" ends with ${shorten(setUp.slice(-1))}, not "${first}"`);
  }
  const complete = steps.at(-1);
  if (complete?.status !== expected.ending) found.push(`"Complete job" is ${complete?.status}`);
  const last = expected.ending === "success" ? "Job succeeded" : "Job failed";
  const times = (complete?.lines ?? []).filter((row) => row === last).length;
  if (times !== 1) found.push(`"Complete job" says ${times} times "${last}"`);
  return found;
}

/**
 * A step's rows without the frames that the runner puts around them. Before a command stands a group
 * with its text and `shell:`; around an action stands a group that begins with its `with:` and `env:`.
 */
export function ownRows(rows: readonly string[]): string[] {
  const own: string[] = [];
  for (let at = 0; at < rows.length; at++) {
    const row = rows[at] ?? "";
    if (row.startsWith("::group::")) at = endOfHead(rows, at);
    else if (row !== "::endgroup::") own.push(row);
  }
  return own;
}

/** Index of the last row of the head that the group at `start` begins with. */
function endOfHead(rows: readonly string[], start: number): number {
  const rest = rows.slice(start + 1);
  const next = rest.findIndex((row) => row.startsWith("::group::") || row === "::endgroup::");
  const inner = next < 0 ? rest : rest.slice(0, next);
  if (inner.some((row) => row.startsWith("shell: "))) return start + inner.length + 1;
  let length = 0;
  while (/^(with:$|env:$| {2})/.test(inner[length] ?? "")) length++;
  return start + length;
}

function shorten(rows: readonly string[]): string {
  if (rows.length === 0) return "nothing";
  const text = rows.map((row) => `"${row.length > 120 ? `${row.slice(0, 120)}...` : row}"`);
  return text.length > 8 ? `${text.slice(0, 8).join(", ")} and more` : text.join(", ");
}
