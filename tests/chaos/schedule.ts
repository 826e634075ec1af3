import { createRandom, type Random } from "./random.ts";

/**
 * What a world is made of. `steady`: light executors, and a controller that lives through everything,
 * so that its memory can be watched. `killed`: the same, and the controller is killed as well. `real`:
 * `main.ts` alone with its process executors, real gates and runners. `pods`: `main.ts` with Pods of a
 * real cluster, in which light gates run (`tests/kubernetes/chaos.ts`).
 */
export type Lane = "steady" | "killed" | "real" | "pods";

/** What one job does. */
export interface JobPlan {
  readonly rows: number;
  /** Between its two halves. */
  readonly ms: number;
  readonly fails: boolean;
}

/** How much of a fault; each fault takes from it what it needs. */
export interface Dose {
  /** How long, for what lasts. */
  readonly ms: number;
  /** How many, for what is counted. */
  readonly count: number;
  /** How often, in [0, 1), for what does not hit everything. */
  readonly share: number;
  /** Seed of what is chosen only then, such as the victim. */
  readonly seed: number;
}

/** One fault at its moment. */
export interface PlannedFault {
  readonly name: string;
  /** Comes when so many jobs of the round have ended, or when nothing has ended for a while, ... */
  readonly afterEnded: number;
  /** ... and so much later. */
  readonly delayMs: number;
  readonly dose: Dose;
}

/** One round: its jobs are queued at once, and it ends when all have ended and nothing is left. */
export interface Round {
  readonly lane: Lane;
  readonly number: number;
  readonly jobs: readonly JobPlan[];
  readonly faults: readonly PlannedFault[];
}

const MOST_JOBS: Readonly<Record<Lane, number>> = { steady: 120, killed: 250, real: 40, pods: 80 };
/** The one whose memory is measured has rounds of one size: what waits at a time takes memory, too. */
const FIRST_JOBS: Readonly<Record<Lane, number>> = { steady: 120, killed: 30, real: 15, pods: 20 };
/** One fault for so many jobs. */
const JOBS_PER_FAULT: Readonly<Record<Lane, number>> = { steady: 15, killed: 15, real: 5, pods: 5 };
const GROWTH = 1.5;

/**
 * The round of that number: a function of the seed alone. Rounds grow, in jobs and in faults, but in
 * `steady`, so that a run that fails early has failed with little to look at.
 */
export function planRound(
  seed: number,
  { lane, number, faults }: {
    readonly lane: Lane;
    readonly number: number;
    /** Names of the faults that this lane knows, each as often as it is likely. */
    readonly faults: readonly string[];
  },
): Round {
  const random = createRandom(seed, lane, number);
  const size = jobsOfRound(lane, number);
  const count = Math.max(1, Math.round(size / JOBS_PER_FAULT[lane]));
  return {
    lane,
    number,
    jobs: Array.from({ length: size }, () => planJob(random, lane)),
    faults: Array.from({ length: count }, () => planFault(random, { size, faults })),
  };
}

/** How many jobs that round has. */
export function jobsOfRound(lane: Lane, number: number): number {
  return Math.min(MOST_JOBS[lane], Math.round(FIRST_JOBS[lane] * GROWTH ** (number - 1)));
}

function planJob(random: Random, lane: Lane): JobPlan {
  const long = random.next() < 0.1;
  return {
    rows: 2 * random.between(1, long ? 600 : 30),
    ms: random.between(0, long ? 4_000 : lane === "real" ? 1_000 : 500),
    fails: random.next() < 0.1,
  };
}

function planFault(
  random: Random,
  { size, faults }: { readonly size: number; readonly faults: readonly string[] },
): PlannedFault {
  return {
    name: random.pick(faults),
    afterEnded: random.between(0, Math.floor(size * 0.9)),
    delayMs: random.between(0, 1_500),
    dose: {
      ms: random.between(300, 6_000),
      count: random.between(1, 4),
      share: 0.2 + random.next() * 0.6,
      seed: random.between(0, 2 ** 31),
    },
  };
}
