import type { Clock } from "../../lib/clock.ts";
import { systemClock } from "../../lib/clock.ts";
import { createFakeForge, type FakeForge } from "../fakes/forge/fake_forge.ts";
import { startHoldProxy } from "../support/hold_proxy.ts";
import { type JobPlan, type Outside, type Side, STEPS } from "./side.ts";

/** The forge with fault switches, served over HTTP. */
export interface ForgeSide extends Side, AsyncDisposable {
  readonly fake: FakeForge;
}

/** Longer than the forge's time-out for silent tasks. */
const SILENCE_MS = 660_000;

/** Serves a forge of its own, with a proxy before it and a runner registered at it. */
export async function openForgeSide(outside: Outside): Promise<ForgeSide> {
  let ahead = 0;
  const clock: Clock = { ...systemClock, now: () => Date.now() + ahead };
  const fake = createFakeForge({ clock });
  const closing = new AbortController();
  const server = Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    signal: closing.signal,
    onListen: () => {},
    // A caller that went away is what these tests are about.
    onError: () => new Response(null, { status: 500 }),
  }, fake.handler);
  const proxy = await startHoldProxy({ hostname: "127.0.0.1", port: server.addr.port });
  const runner = fake.addRunner([]);
  const jobOf = (id: number) => {
    const job = fake.forge.jobs().find((job) => job.jobId === id);
    if (job === undefined) throw new Error(`Look at job ${id}: the forge does not have it`);
    return job;
  };
  return {
    kind: "forge",
    fake,
    proxy,
    uuid: runner.uuid,
    token: runner.token.reveal(),
    async start(plan: JobPlan = {}) {
      const files = await outside.open(plan);
      const [first, ...others] = STEPS;
      const workflow = {
        name: "fault",
        on: "push",
        jobs: {
          work: {
            "runs-on": ["self-hosted", "pod"],
            env: { FILE: files.file, ROWS: String(files.rows) },
            steps: [plan.script ?? first, ...others].map((run) => ({ run })),
          },
        },
      };
      const [id = 0] = fake.forge.dispatch([{
        repository: "sample/faults",
        workflow: "fault.yaml",
        jobs: [{
          repository: "sample/faults",
          workflow: "fault.yaml",
          eventName: "push",
          job: "work",
          title: "work",
          runsOn: ["self-hosted", "pod"],
          payload: JSON.stringify(workflow),
        }],
      }]);
      return { ...files, id, run: jobOf(id).runId };
    },
    result: ({ id }) => Promise.resolve(jobOf(id).result),
    rows: ({ id }) => Promise.resolve(fake.forge.rows(id).map((row) => row.content)),
    openSteps: ({ id }) =>
      Promise.resolve(jobOf(id).steps.filter((step) => step.result === null).length),
    cancel: ({ id }) => Promise.resolve(fake.forge.cancel(id)),
    passSilence: () => void (ahead += SILENCE_MS),
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      closing.abort();
      await server.finished;
    },
  };
}
