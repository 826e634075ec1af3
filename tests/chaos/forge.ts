import type { Result } from "../../controller/model/reason.ts";
import type { ForgeStore, StoredJob } from "../../embedded/forge/store.ts";
import { type Clock, systemClock } from "../../lib/clock.ts";
import { createFakeForge, type FakeForge } from "../fakes/forge/fake_forge.ts";
import { type OutsideFiles, STEPS } from "./outside.ts";
import { type HoldProxy, startHoldProxy } from "../support/hold_proxy.ts";
import type { JobPlan } from "./schedule.ts";
import { startTrace, type Trace } from "./trace.ts";

/** What the forge itself has seen of a job. */
export interface Seen {
  /** When it was handed out first, `performance.now()`; null while it waits. */
  handedAt: number | null;
  /** Results, in the order in which they were stored: there may be one. */
  readonly ends: Result[];
  /** When the first of them was stored, `performance.now()`. */
  endedAt: number | null;
  /** A user has cancelled it while it ran or waited. */
  cancelled: boolean;
}

/** The forge of a world: with fault switches, and a proxy that holds and loses calls before it. */
export interface ChaosForge extends AsyncDisposable {
  readonly fake: FakeForge;
  readonly proxy: HoldProxy;
  readonly trace: Trace;
  readonly uuid: string;
  readonly token: string;
  /** Queues the jobs in one batch; their ids in order. */
  queue(jobs: readonly { readonly plan: JobPlan; readonly files: OutsideFiles }[]): number[];
  job(id: number): Readonly<StoredJob>;
  seen(id: number): Readonly<Seen>;
  rows(id: number): readonly string[];
  cancel(id: number): void;
  /** Lets the forge's own time-out for silent tasks pass. */
  passSilence(): void;
}

/** Longer than the forge's time-out for silent tasks. */
const SILENCE_MS = 660_000;
const REPOSITORY = "sample/chaos";

/** Serves a forge over HTTP, with a runner registered at it. */
export async function openForge(): Promise<ChaosForge> {
  let ahead = 0;
  const clock: Clock = { ...systemClock, now: () => Date.now() + ahead };
  const seen = new Map<number, Seen>();
  const seenOf = (id: number) => {
    const known = seen.get(id);
    if (known !== undefined) return known;
    const fresh: Seen = { handedAt: null, ends: [], endedAt: null, cancelled: false };
    seen.set(id, fresh);
    return fresh;
  };
  const fake = createFakeForge({ clock, store: watchingStore(seenOf) });
  const server = Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    onListen() {},
    // An answer that the forge's own fault loses.
    onError: () => new Response(null, { status: 500 }),
  }, fake.handler);
  const proxy = await startHoldProxy({ hostname: "127.0.0.1", port: server.addr.port });
  const trace = startTrace(proxy);
  const runner = fake.addRunner([]);
  const job = (id: number) => {
    const found = fake.forge.jobs().find(({ jobId }) => jobId === id);
    if (found === undefined) throw new Error(`Look at job ${id}: the forge does not have it`);
    return found;
  };
  return {
    fake,
    proxy,
    trace,
    uuid: runner.uuid,
    token: runner.token.reveal(),
    job,
    queue: (jobs) =>
      fake.forge.dispatch([{
        repository: REPOSITORY,
        workflow: "chaos.yaml",
        jobs: jobs.map(({ plan, files }, index) => ({
          repository: REPOSITORY,
          workflow: "chaos.yaml",
          eventName: "push",
          job: "work",
          title: `work (${index + 1})`,
          runsOn: RUNS_ON,
          payload: JSON.stringify(workflowOf(plan, files)),
        })),
      }]),
    seen: seenOf,
    rows: (id) => fake.forge.rows(id).map(({ content }) => content),
    cancel(id) {
      if (job(id).result !== null) return;
      seenOf(id).cancelled = true;
      fake.forge.cancel(id);
    },
    passSilence: () => void (ahead += SILENCE_MS),
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      await server.shutdown();
    },
  };
}

const RUNS_ON = ["self-hosted", "pod"];

function workflowOf(plan: JobPlan, { file }: OutsideFiles) {
  const env = {
    FILE: file,
    ROWS: String(plan.rows),
    SECONDS_LONG: String(plan.ms / 1000),
    CODE: plan.fails ? "1" : "0",
  };
  const steps = STEPS.map((run) => ({ run }));
  return { name: "chaos", on: "push", jobs: { work: { "runs-on": RUNS_ON, env, steps } } };
}

/** Keeps nothing, but sees every change at the moment at which it is made. */
function watchingStore(seenOf: (id: number) => Seen): ForgeStore {
  return {
    load: () => undefined,
    saveMeta() {},
    saveJob({ jobId, taskId, result }) {
      const seen = seenOf(jobId);
      if (taskId !== 0) seen.handedAt ??= performance.now();
      if (result === null || seen.ends.at(-1) === result) return;
      seen.ends.push(result);
      seen.endedAt ??= performance.now();
    },
    appendRows() {},
    deleteJob() {},
  };
}
