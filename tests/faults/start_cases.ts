import { eventually } from "../support/eventually.ts";
import { breakGate } from "./broken_gate.ts";
import type { FaultCase } from "./case.ts";
import type { ForgeSide } from "./forge_side.ts";
import { checkJob, checkNothingLeft } from "./oracle.ts";
import type { OutsideJob } from "./side.ts";
import type { World } from "./world.ts";

type ForgeWorld = World<ForgeSide>;

/** Slots of the world of {@link parkedCases}: so many jobs can fail side by side. */
export const PARKED = 30;
const FAILING = 20;
/** Of five: the pause before the last one is the longest. */
const FAILURES = 4;
const GREEN = { results: ["success"], begins: [1], withinMs: 120_000 } as const;
const LEFT_MS = 30_000;
/** The next executor starts within this after the cause is gone. */
const NEXT_MS = 60_000;
/** Five executors one after the other, with pauses of 2, 4, 8 and 16 s; thirty of them at a time. */
const PARKED_MS = 240_000;
/** A job alone takes about 2 s. */
const GOOD_MS = 15_000;

/** Executors that cannot start, and are repaired: with few slots. */
export const startCases: readonly FaultCase<ForgeSide>[] = [
  {
    name: `${FAILING} jobs whose executors end at once, then repaired`,
    run: failThenRepair,
  },
];

/** The same until all are parked: with a slot for each. */
export const parkedCases: readonly FaultCase<ForgeSide>[] = [
  {
    name: `${PARKED} parked jobs, a good one beside them, and a retry by the API`,
    run: parkAndRetry,
  },
];

async function failThenRepair(world: ForgeWorld): Promise<string> {
  const broken = await breakGate(world.place.runtimeDir);
  let jobs: OutsideJob[];
  try {
    jobs = await startMany(world, FAILING);
    await shown(world, {
      what: "the first to have failed again and again",
      timeoutMs: 60_000,
      count: 1,
      holds: ({ failures }) => failures >= FAILURES,
    });
  } finally {
    await broken[Symbol.asyncDispose]();
  }
  const repaired = performance.now();
  const since = () => seconds(performance.now() - repaired);
  await eventually(async () => (await Promise.all(jobs.map(hasBegun))).includes(true), {
    what: "one of the jobs to begin",
    timeoutMs: NEXT_MS,
  });
  const started = since();
  await Promise.all(jobs.map((job) => checkJob(world, job, GREEN)));
  const all = since();
  const left = await checkNothingLeft(world, LEFT_MS);
  return `the next began ${started} after the repair, all ${FAILING} ended after ${all}, ` +
    `nothing left after ${left.toFixed(1)} s`;
}

async function parkAndRetry(world: ForgeWorld): Promise<string> {
  const alone = await timeOfOne(world);
  const broken = await breakGate(world.place.runtimeDir);
  const from = performance.now();
  let jobs: OutsideJob[];
  try {
    jobs = await startMany(world, PARKED);
    await shown(world, {
      what: "all of them to be parked",
      timeoutMs: PARKED_MS,
      count: PARKED,
      holds: ({ state }) => state === "parked",
    });
  } finally {
    await broken[Symbol.asyncDispose]();
  }
  const parked = seconds(performance.now() - from);
  const beside = await timeOfOne(world);
  if (beside > GOOD_MS) {
    throw new Error(`A good job took ${seconds(beside)} beside the parked ones`);
  }
  const retried = performance.now();
  await retryAll(world);
  await Promise.all(jobs.map((job) => checkJob(world, job, GREEN)));
  const ended = seconds(performance.now() - retried);
  const left = await checkNothingLeft(world, LEFT_MS);
  return `parked after ${parked}; a good job took ${seconds(beside)}, ${seconds(alone)} without ` +
    `them; all ended ${ended} after the retry, nothing left after ${left.toFixed(1)} s`;
}

async function startMany(world: ForgeWorld, count: number): Promise<OutsideJob[]> {
  const jobs: OutsideJob[] = [];
  for (let n = 0; n < count; n++) jobs.push(await world.side.start({ rows: 10 }));
  return jobs;
}

/** Milliseconds from a job's start to its end. */
async function timeOfOne(world: ForgeWorld): Promise<number> {
  const from = performance.now();
  const job = await world.side.start();
  await checkJob(world, job, GREEN);
  return performance.now() - from;
}

/** What an operator's *Retry* does, for all that are parked. */
async function retryAll(world: ForgeWorld): Promise<void> {
  for (const { id, state } of await shownIn(world)) {
    if (state !== "parked") continue;
    const path = `/api/v1/assignments/${id}/retry`;
    const answer = await world.post<{ readonly state: string }>(path, { note: "repaired" });
    if (answer.state !== "done") throw new Error(`Retry ${id}: the operation is "${answer.state}"`);
  }
}

interface Shown {
  readonly id: string;
  readonly state: string;
  readonly failures: number;
}

async function shownIn(world: ForgeWorld): Promise<readonly Shown[]> {
  const path = "/api/v1/assignments?limit=200";
  return (await world.get<{ readonly items: readonly Shown[] }>(path)).items;
}

/** Waits until so many assignments are shown as they should be. */
async function shown(
  world: ForgeWorld,
  options: {
    readonly what: string;
    readonly timeoutMs: number;
    readonly count: number;
    holds(shown: Shown): boolean;
  },
): Promise<void> {
  await eventually(
    async () => (await shownIn(world)).filter(options.holds).length >= options.count,
    { ...options, everyMs: 250 },
  );
}

async function hasBegun(job: OutsideJob): Promise<boolean> {
  return (await job.lines()).includes("begin");
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
