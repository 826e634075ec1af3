import type { Report } from "../e2e/report.ts";
import type { Diary } from "./diary.ts";
import { type Fault, faultsOf, weighedNames } from "./faults.ts";
import { compareQuarters } from "./memory.ts";
import { judgeExit } from "./oracle.ts";
import { type Played, playRound } from "./play.ts";
import { jobsOfRound, type Lane, planRound, type Round } from "./schedule.ts";
import { type LocalLane, openWorld, type World } from "./world.ts";

const SHARES: Readonly<Record<LocalLane, number>> = { steady: 0.55, killed: 0.35, real: 0.1 };
/** What {@link playChaos} plays. */
export const LANES: readonly LocalLane[] = ["steady", "killed", "real"];
/** Issue of the whole exercise: what a job leaves behind in the controller must not add up. */
const MOST_GROWTH = 0.1;
/** Fewer say nothing about memory. */
const LEAST_JOBS = 400;

/** How {@link playChaos} plays. */
export interface ChaosOptions {
  readonly report: Report;
  /** Begins no further round after so many milliseconds of `performance.now()`. */
  readonly until: number;
  /** Where an interruption finds what it has to close. */
  readonly interrupted: Interrupted;
  /** One round alone, by its number in its lane. */
  readonly round?: { readonly lane: LocalLane; readonly number: number };
}

/** What closes the worlds that are open, so that nothing goes on running. */
export type Interrupted = Set<() => Promise<void>>;

/**
 * Plays every round of the diary's plan that it does not hold yet, and notes each in it. Rounds that
 * go wrong are failures of the report; resolves to false when the time was over before the end.
 */
export async function playChaos(diary: Diary, options: ChaosOptions): Promise<boolean> {
  const { round } = options;
  if (round !== undefined) {
    const { lane, number } = round;
    return await playLane(diary, { ...options, ...local(lane, options), numbers: [number] });
  }
  const play = (lane: LocalLane) => {
    const numbers = roundsOf(lane, diary.plan.jobs * SHARES[lane]);
    return playLane(diary, { ...options, ...local(lane, options), numbers });
  };
  // Two at a time: much of a round is waiting for what has been killed.
  const [steady, others] = await Promise.all([
    play("steady"),
    play("killed").then(async (whole) => await play("real") && whole),
  ]);
  return steady && others;
}

function local(
  lane: LocalLane,
  { report }: Pick<ChaosOptions, "report">,
): Pick<LaneOptions, "lane" | "faults" | "open"> {
  return { lane, faults: faultsOf(lane), open: () => openWorld(lane, report.say) };
}

/** The sums of a diary in one line. */
export function sumsOf({ entries }: Diary): string {
  const sum = (of: (entry: Diary["entries"][number]) => number) =>
    entries.reduce((total, entry) => total + of(entry), 0);
  const about = (word: string) =>
    sum(({ complaints }) => complaints.filter((text) => text.includes(word)).length);
  return `${sum(({ jobs }) => jobs)} jobs, ${sum(({ faults }) => faults)} faults: ` +
    `${about("lost:")} lost, ${about("doubled:")} doubled, ${about("Leaked:")} leaked, ` +
    `${sum(({ restarts }) => restarts ?? 0)} restarts`;
}

/** Numbers of the rounds that bring at least so many jobs. */
export function roundsOf(lane: Lane, jobs: number): number[] {
  const numbers: number[] = [];
  for (let left = jobs, next = 1; left > 0; next++) {
    numbers.push(next);
    left -= jobsOfRound(lane, next);
  }
  return numbers;
}

/** How {@link playLane} plays. */
export interface LaneOptions extends Omit<ChaosOptions, "round"> {
  readonly lane: Lane;
  readonly numbers: readonly number[];
  /** What a schedule picks from: those of the world. */
  readonly faults: readonly Pick<Fault, "name" | "weight">[];
  open(): Promise<World>;
}

/** Plays what has not been played of a lane, in one world while it is good; false when time is over. */
export async function playLane(diary: Diary, options: LaneOptions): Promise<boolean> {
  const { lane, report } = options;
  const { seed } = diary.plan;
  let world: World | undefined;
  let jobs = 0;
  const marks: number[] = [];
  const close = async () => {
    const last = world;
    world = undefined;
    await last?.[Symbol.asyncDispose]();
  };
  options.interrupted.add(close);
  try {
    for (const number of options.numbers) {
      if (diary.entries.some((entry) => entry.lane === lane && entry.number === number)) continue;
      if (performance.now() > options.until) return false;
      const round = planRound(seed, { lane, number, faults: weighedNames(options.faults) });
      await diary.begins(round);
      const good = await report.check(`${lane} ${number}`, async () => {
        world ??= await options.open();
        return await playOne(world, round, { diary, marks });
      });
      jobs += round.jobs.length;
      if (good || world === undefined) continue;
      report.say(`        again: --seed=${seed} --round=${lane}:${number}`);
      await diary.keep(round, await world.log());
      await close();
    }
    if (world === undefined) return true;
    const last = world;
    if (lane === "steady" && jobs >= LEAST_JOBS) {
      await report.check(
        "memory of the controller that lived through it",
        () => Promise.resolve(checkMemory(last, marks)),
      );
    }
    await report.check(`${lane}: SIGTERM ends everything`, () => checkEnd(last));
    return true;
  } finally {
    options.interrupted.delete(close);
    await close();
  }
}

async function playOne(
  world: World,
  round: Round,
  { diary, marks }: { readonly diary: Diary; readonly marks: number[] },
): Promise<string> {
  const played = await playRound(world, round, (entry) => diary.note(entry));
  marks.push(...played.endedAt);
  const ends: Record<string, number> = {};
  for (const verdict of played.verdicts) {
    const how = verdict.kind === "forgotten" || verdict.planned
      ? verdict.kind
      : `${verdict.kind} by a fault`;
    ends[how] = (ends[how] ?? 0) + 1;
  }
  const { lane, number } = round;
  const { complaints, restarts } = played;
  await diary.ends({
    lane,
    number,
    jobs: round.jobs.length,
    faults: played.happened.length,
    restarts,
    complaints,
    ends,
  });
  if (complaints.length > 0) {
    const more = complaints.length > 12 ? [`and ${complaints.length - 12} more`] : [];
    throw new Error([...complaints.slice(0, 12), ...more, faultsOfRound(played)].join("\n"));
  }
  const ways = Object.entries(ends).map(([how, count]) => `${count} ${how}`).join(", ");
  const again = restarts === 0 ? "" : `, ${restarts} ${restarts === 1 ? "restart" : "restarts"}`;
  return `${round.jobs.length} jobs, ${played.happened.length} faults${again}: ${ways}; ` +
    `ended after ${played.seconds.toFixed(1)} s, nothing left ${
      played.cleanSeconds.toFixed(1)
    } s later`;
}

function faultsOfRound({ happened }: Played): string {
  return `faults: ${happened.map(({ name, note }) => `${name} (${note})`).join("; ")}`;
}

function checkMemory(world: World, marks: readonly number[]): string {
  const figures = compareQuarters(world.watch.memory, marks);
  if (figures === undefined) throw new Error("Compare memory: there are too few samples");
  const { first, last, most, growth } = figures;
  const text = `first quarter ${first.toFixed(1)} MiB, last ${last.toFixed(1)} MiB, most ${
    most.toFixed(1)
  } MiB, ${(growth * 100).toFixed(1)} %`;
  if (growth > MOST_GROWTH) throw new Error(`It grows: ${text}`);
  return text;
}

async function checkEnd(world: World): Promise<string> {
  const code = await world.end();
  const exits = world.takeExits().flatMap((exit) => judgeExit(exit, []));
  if (exits.length > 0) throw new Error(exits.join("\n"));
  if (code !== 0) throw new Error(`It ended with exit code ${code}`);
  const left = await world.place.processes();
  if (left.length > 0) {
    throw new Error(`Left running: ${left.map(({ command }) => command).join(", ")}`);
  }
  return `${world.watch.looks} looks at waiting jobs, each with its reason`;
}
