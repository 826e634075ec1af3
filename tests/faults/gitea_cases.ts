import { signalProcess } from "../../backends/process/proc.ts";
import { systemClock } from "../../lib/clock.ts";
import { eventually } from "../support/eventually.ts";
import type { FaultCase } from "./case.ts";
import { type FoundExecutor, killExecutor, runnerOf, theExecutor } from "./executors.ts";
import type { GiteaSide } from "./gitea_side.ts";
import { checkJob, checkNothingLeft } from "./oracle.ts";
import { isFinalState, within } from "./points.ts";
import type { OutsideJob } from "./side.ts";
import type { World } from "./world.ts";

type GiteaWorld = World<GiteaSide>;

const LEFT_MS = 75_000;
const GREEN = { results: ["success"], begins: [1], withinMs: 60_000 } as const;
/** Our own words, or those about an interrupted job. */
const WHY = /gitea-dynamic-runner: |interrupted/;

/** Ends of an executor in mid-job: never green, with a reason. */
export const endCases: readonly FaultCase<GiteaSide>[] = [
  ending("the executor is killed in mid-job", killExecutor),
  ending("the gate is killed in mid-job", ({ gate }) => signalProcess(gate, "SIGKILL")),
  ending("the runner is killed in mid-job", async (executor) => {
    signalProcess(await runnerOf(executor), "SIGKILL");
  }),
  ending("the executor's group gets SIGTERM in mid-job", ({ leader }) => {
    signalProcess(-leader, "SIGTERM");
  }),
];

function ending(
  name: string,
  end: (executor: FoundExecutor) => void | Promise<void>,
): FaultCase<GiteaSide> {
  return {
    name,
    async run(world) {
      const job = await world.side.start({ held: true });
      await began(job);
      await end(await theExecutor(world.place.runtimeDir));
      const { seconds } = await checkJob(world, job, {
        results: ["failure"],
        begins: [1],
        withinMs: 100_000,
        reason: WHY,
      });
      const left = await checkNothingLeft(world, LEFT_MS);
      return `failure after ${seconds.toFixed(1)} s, nothing left after ${left.toFixed(1)} s`;
    },
  };
}

/** Gitea itself is stopped: nothing else may run on it. */
export const awayCases: readonly FaultCase<GiteaSide>[] = [{
  name: "Gitea is stopped for 90 s when a job ends",
  async run(world) {
    const job = await world.side.start({ held: true, rows: 2_000 });
    await began(job);
    await world.side.peers.script("gitea.sh", "stop");
    await job.letGo();
    await systemClock.sleep(90_000);
    await world.side.peers.script("gitea.sh", "start");
    world.side.signIn();
    const { seconds } = await checkJob(world, job, GREEN);
    const left = await checkNothingLeft(world, LEFT_MS);
    return `success and 2,000 rows ${seconds.toFixed(1)} s after Gitea, ` +
      `nothing left after ${left.toFixed(1)} s`;
  },
}];

const WAIT_MS = 240_000;

/** On a Gitea that takes tasks for dead after 60 s. */
export const waitCases: readonly FaultCase<GiteaSide>[] = [{
  name: "a job waits 4 minutes for a slot where tasks are dead after 60 s of silence",
  async run(world) {
    const first = await world.side.start({ held: true });
    await began(first);
    const second = await world.side.start();
    await inState(world, second, "stored");
    await systemClock.sleep(WAIT_MS);
    await first.letGo();
    await checkJob(world, first, GREEN);
    const { seconds } = await checkJob(world, second, GREEN);
    await checkNothingLeft(world, LEFT_MS);
    return `both green, the second ${seconds.toFixed(1)} s after the first`;
  },
}];

/** Waits until the job has written that it began. */
export async function began(job: OutsideJob): Promise<void> {
  await eventually(async () => (await job.lines()).includes("begin"), {
    what: "the job to begin",
    timeoutMs: 40_000,
  });
}

interface Assignment {
  readonly id: string;
  readonly runId: string | null;
  readonly state: string;
  readonly reason: { readonly code: string } | null;
}

/** Waits until the job's assignment is in the state. */
export function inState(world: World, job: OutsideJob, state: string): Promise<Assignment> {
  return eventually(async () => {
    const found = await assignmentOf(world, job);
    return found?.state === state && found;
  }, { what: `job ${job.id} to be ${state}`, timeoutMs: 40_000, everyMs: 50 });
}

async function assignmentOf(world: World, job: OutsideJob): Promise<Assignment | undefined> {
  const { items } = await world.get<{ readonly items: readonly Assignment[] }>(
    "/api/v1/assignments?limit=200",
  );
  return items.find(({ runId }) => runId === String(job.run));
}

/** How long the controller may not know of a cancellation, with a second to act. */
const HEARD_MS = 11_500;

/** The user cancels the run in each phase of its job. */
export const cancelCases: readonly FaultCase<GiteaSide>[] = [
  cancelled("stored", async (world) => {
    const blocker = await world.side.start({ held: true });
    await began(blocker);
    const job = await world.side.start();
    await inState(world, job, "stored");
    return {
      job,
      async heard() {
        await blocker.letGo();
        await checkJob(world, blocker, GREEN);
      },
    };
  }),
  cancelled("admitted", async (world) => {
    // Every controller of this machine takes this lock to give an executor its user.
    const lock = await Deno.open("/run/gitea-dynamic-runner-users/lock", { write: true });
    await lock.lock(true);
    const job = await world.side.start();
    await inState(world, job, "admitted");
    return { job, heard: () => lock.close() };
  }),
  cancelled("starting", async (world) => {
    const point = world.natsProxy.hold(({ way, subject, text }) =>
      way === "answer" && subject.startsWith("$KV.CI_RUNNER_STATE.task.") &&
      !text.includes(`"uid":null`)
    );
    const job = await world.side.start();
    await within("the UID is recorded", point.reached);
    await inState(world, job, "starting");
    return { job, heard: () => point.release() };
  }),
  cancelled("ready", async (world) => {
    const job = await world.side.start();
    signalProcess((await theExecutor(world.place.runtimeDir)).gate, "SIGSTOP");
    await inState(world, job, "ready");
    return { job, heard() {} };
  }),
  {
    name: "the run is cancelled in Gitea while its job is running",
    async run(world) {
      const job = await world.side.start({ held: true });
      await began(job);
      await inState(world, job, "running");
      return await cancelledAt(world, job, [1]);
    },
  },
  {
    name: "the run is cancelled in Gitea while its job is finishing",
    async run(world) {
      using point = world.side.proxy.hold((call) => call.answer === null && isFinalState(call));
      const job = await world.side.start();
      await within("the final state is sent", point.reached);
      await world.side.cancel(job);
      point.release();
      return await cancelledAt(world, job, [1], { done: true });
    },
  },
];

interface Phase {
  readonly job: OutsideJob;
  /** Lets go on what was held, once the controller knows. */
  heard(): void | Promise<void>;
}

function cancelled(
  phase: string,
  reach: (world: GiteaWorld) => Promise<Phase>,
): FaultCase<GiteaSide> {
  return {
    name: `the run is cancelled in Gitea while its job is ${phase}`,
    async run(world) {
      const { job, heard } = await reach(world);
      const from = performance.now();
      await world.side.cancel(job);
      await eventually(async () => {
        const found = await assignmentOf(world, job);
        return found?.reason?.code === "cancelled" || found?.state === "cleaned";
      }, { what: "the controller to hear of it", timeoutMs: HEARD_MS, everyMs: 50 })
        .finally(heard);
      const seconds = (performance.now() - from) / 1000;
      return `heard after ${seconds.toFixed(1)} s, ${await cancelledAt(world, job, [0], {
        done: true,
      })}`;
    },
  };
}

async function cancelledAt(
  world: GiteaWorld,
  job: OutsideJob,
  begins: readonly number[],
  { done = false } = {},
): Promise<string> {
  if (!done) await world.side.cancel(job);
  const expected = { results: ["cancelled"], begins, withinMs: 30_000 } as const;
  const { seconds } = await checkJob(world, job, expected);
  const left = await checkNothingLeft(world, LEFT_MS);
  return `cancelled after ${seconds.toFixed(1)} s, nothing left after ${left.toFixed(1)} s`;
}
