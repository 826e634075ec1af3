import assert from "node:assert/strict";
import { type BackendName, BACKENDS } from "../../controller/model/ids.ts";
import { stringifyYaml } from "../../controller/model/workflow.ts";
import type { AssignmentDetailView, AssignmentView, Page } from "../../controller/views/views.ts";
import { eventually } from "../support/eventually.ts";
import type { RepositoryFile } from "../support/gitea_api.ts";
import { quantile } from "../support/quantile.ts";
import type { Apart, Side } from "./apart_stage.ts";
import { runEnd } from "./run_end.ts";

/** Jobs that wait on the side that hangs. */
export const WAITING = 4;

/** When one job came to what; milliseconds after its dispatch at Gitea. */
export interface Sample {
  /** Its gate was handed the job, over mTLS. */
  readonly startMs: number;
  /** Every event of its timeline, by the controller's clock, which is ours. */
  readonly events: ReadonlyMap<string, number>;
  /** Of this machine at that time: processes that run or want to, over the last minute. */
  readonly load: number;
}

const JOB_MS = 120_000;
const GONE_MS = 60_000;
const EVERY_MS = 150;

/**
 * Of each backend: the job that is measured, those that wait, each with an identity of its own, and one
 * that runs as long as it is told.
 */
export const APART_WORKFLOWS: readonly RepositoryFile[] = BACKENDS.flatMap((backend) => [
  workflow(backend, "quick", { run: "echo quick" }),
  ...Array.from(
    { length: WAITING },
    (_, index) => workflow(backend, `waits-${index}`, { run: "echo quick" }),
  ),
  workflow(backend, "runs", {
    run: 'sleep "${{ inputs.seconds }}"',
    inputs: { seconds: { required: true } },
  }),
]);

function workflow(
  backend: BackendName,
  name: string,
  { run, inputs }: { readonly run: string; readonly inputs?: unknown },
): RepositoryFile {
  return {
    path: `.gitea/workflows/${backend}-${name}.yaml`,
    content: stringifyYaml({
      on: { workflow_dispatch: inputs === undefined ? {} : { inputs } },
      jobs: { [`${backend}-${name}`]: { "runs-on": ["self-hosted", backend], steps: [{ run }] } },
    }),
  };
}

/** Starts a job of {@link APART_WORKFLOWS}; resolves to its run. */
export function dispatch(
  { gitea, repository }: Apart,
  { backend }: Side,
  name: string,
  inputs: Readonly<Record<string, string>> = {},
): Promise<number> {
  return gitea.dispatch(repository, `${backend}-${name}.yaml`, inputs);
}

/** Resolves when the run's job has succeeded; rejects with its log at another end. */
export async function succeeded(
  { gitea, repository, controller }: Apart,
  run: number,
  timeoutMs = JOB_MS,
): Promise<void> {
  const job = await runEnd({ gitea, repository }, run, timeoutMs).catch(async (cause) => {
    throw new Error(`${cause.message}\n${await controller.process.tail(12)}`, { cause });
  });
  if (job.status === "success") return;
  assert.fail(`run ${run}: ${job.status}\n${await gitea.log(repository, job.id)}`);
}

/** Plays the measured job of a side until nothing is left of it. */
export async function measure(apart: Apart, side: Side): Promise<Sample> {
  const { controller } = apart;
  const since = Date.now();
  const run = await dispatch(apart, side, "quick");
  await succeeded(apart, run);
  const ended = `/api/v1/assignments?state=cleaned&backend=${side.backend}&limit=10`;
  const { id } = await eventually(async () => {
    const { items } = await controller.get(ended) as Page<AssignmentView>;
    return items.find((one) => one.runId === String(run));
  }, { what: `the end of what run ${run} had`, timeoutMs: GONE_MS, everyMs: EVERY_MS });
  const { events } = await controller.get(`/api/v1/assignments/${id}`) as AssignmentDetailView;
  const times = new Map<string, number>();
  // The last one: what was done twice has held the job up until then.
  for (const { event, at } of events) times.set(event, Date.parse(at) - since);
  const startMs = times.get("runner_claimed");
  assert.ok(startMs !== undefined, `${id} has no hand-out: ${[...times.keys()].join(", ")}`);
  return { startMs, events: times, load: Deno.loadavg()[0] ?? NaN };
}

/** Medians of the events of both, in the order of their times: where the difference comes from. */
export function compareEvents(without: readonly Sample[], within: readonly Sample[]): string {
  const median = (samples: readonly Sample[], event: string) =>
    quantile(samples.flatMap(({ events }) => events.get(event) ?? []), 0.5);
  return [...new Set([...without, ...within].flatMap(({ events }) => [...events.keys()]))]
    .map((event) => ({ event, a: median(without, event), b: median(within, event) }))
    .sort((one, other) => one.a - other.a)
    .map(({ event, a, b }) => `${event} ${a} -> ${b} ms`).join("\n");
}
