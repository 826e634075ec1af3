import { systemClock } from "../../lib/clock.ts";
import { eventually } from "../support/eventually.ts";
import type { Fault, Happened } from "./faults.ts";
import {
  isForgotten,
  judgeExit,
  judgeJob,
  nothingLeft,
  type PlayedJob,
  type Verdict,
} from "./oracle.ts";
import type { Lane, PlannedFault, Round } from "./schedule.ts";
import type { World } from "./world.ts";

/** How a round went. */
export interface Played {
  readonly verdicts: readonly Verdict[];
  /** What is not as it should be; empty for a good round. */
  readonly complaints: readonly string[];
  readonly happened: readonly Happened[];
  /** How many controllers ended by themselves and were started again. */
  readonly restarts: number;
  /** When each job ended, `performance.now()`. */
  readonly endedAt: readonly number[];
  /** From the first job queued to the last one ended, and until nothing was left. */
  readonly seconds: number;
  readonly cleanSeconds: number;
}

/** A round that stands still for so long is over: what has not ended by then is lost. */
const STANDSTILL_MS = 150_000;
/** Then the next fault comes though too few have ended. */
const IMPATIENT_MS: Readonly<Record<Lane, number>> = {
  ...{ steady: 8_000, killed: 8_000, real: 8_000 },
  // The first of them ends after its Pod, its SVID and its job.
  pods: 30_000,
};
/** A job of which nobody has heard for so long may be forgotten. */
const QUIET_MS = 6_000;

/** Plays one round in a world in which nothing is left, and looks at it from outside afterwards. */
export async function playRound(
  world: World,
  round: Round,
  log: (entry: unknown) => void,
): Promise<Played> {
  const { forge } = world;
  const planned = await Promise.all(
    round.jobs.map(async (plan) => ({ plan, files: await world.outside.open() })),
  );
  const started = performance.now();
  const ids = forge.queue(planned);
  const jobs: PlayedJob[] = planned.map((job, index) => ({ ...job, id: ids[index] ?? 0 }));
  const happened: Happened[] = [];
  const complaints: string[] = [];
  const progress = createProgress(world, jobs);

  const byName = new Map(world.faults.map((fault) => [fault.name, fault]));
  const faults = round.faults.map(async (plan) => {
    const fault = byName.get(plan.name);
    if (fault === undefined) throw new Error(`Play a fault: there is no "${plan.name}"`);
    await progress.reaches(plan.afterEnded);
    await systemClock.sleep(plan.delayMs);
    try {
      const did = await runFault(world, fault, plan);
      happened.push(did);
      log({ round: round.number, lane: round.lane, at: did.from - started, ...did });
    } catch (error) {
      complaints.push(`${plan.name}: ${error instanceof Error ? error.message : error}`);
    }
  });
  await Promise.all(faults);
  // What was switched on and met nobody must not meet the next round.
  calm(world);
  const forgotten = await untilEnded(world, jobs, happened);
  const seconds = (performance.now() - started) / 1000;

  const verdicts: Verdict[] = [];
  let cleanSeconds = NaN;
  try {
    cleanSeconds = await nothingLeft(world);
  } catch (error) {
    complaints.push(String(error));
  }
  for (const job of jobs) {
    await judgeJob(world, job, { happened, forgotten: forgotten.has(job.id) }).then(
      (verdict) => verdicts.push(verdict),
      (error: unknown) => complaints.push(error instanceof Error ? error.message : String(error)),
    );
  }
  if (world.pods !== null) complaints.push(...await world.pods.complaints());
  const exits = world.takeExits();
  complaints.push(...exits.flatMap((exit) => judgeExit(exit, happened)));
  complaints.push(...world.watch.complaints.map((who) => `${who} without a reason`));
  const endedAt = jobs.flatMap(({ id }) => world.forge.seen(id).endedAt ?? []);
  const restarts = exits.length;
  return { verdicts, complaints, happened, restarts, endedAt, seconds, cleanSeconds };
}

async function runFault(world: World, fault: Fault, plan: PlannedFault): Promise<Happened> {
  const from = performance.now();
  const { note, killed = [] } = await turns.run(fault, () => fault.run(world, plan.dose));
  const { name, losesHandOuts = false, endsStarts = false } = fault;
  return { name, from, to: performance.now(), losesHandOuts, endsStarts, killed, note };
}

/** Who replaces the controller, or the API server, must not do so twice at once. */
const turns = (() => {
  const last = new Map<string, Promise<unknown>>();
  return {
    run<T>({ name }: Fault, operation: () => Promise<T>): Promise<T> {
      const whose = ["controller", "kube-apiserver"].find((one) => name.startsWith(one));
      if (whose === undefined) return operation();
      const mine = (last.get(whose) ?? Promise.resolve()).then(operation, operation);
      last.set(whose, mine);
      return mine;
    },
  };
})();

function createProgress(world: World, jobs: readonly PlayedJob[]) {
  const ended = () => jobs.filter(({ id }) => world.forge.seen(id).ends.length > 0).length;
  return {
    /** Waits until so many have ended, or none has for a while. */
    async reaches(count: number): Promise<void> {
      let seen = ended();
      let since = performance.now();
      while (seen < count && performance.now() - since < IMPATIENT_MS[world.lane]) {
        await systemClock.sleep(50);
        const now = ended();
        if (now > seen) since = performance.now();
        seen = now;
      }
    },
  };
}

/** Switches every fault off that is counted. */
function calm({ forge, light }: World): void {
  const { faults } = forge.fake;
  faults.throttled = 0;
  faults.handOutTwice = 0;
  faults.failLastRow = 0;
  faults.loseFinalAnswer = 0;
  faults.handOutAndHang = 0;
  if (light !== null) light.host.faults.loseCreates = 0;
}

/** Waits until every job has ended, or the round stands still; the forgotten ones are ended last. */
async function untilEnded(
  world: World,
  jobs: readonly PlayedJob[],
  happened: readonly Happened[],
): Promise<ReadonlySet<number>> {
  const { forge } = world;
  const open = () => jobs.filter(({ id }) => forge.seen(id).ends.length === 0);
  let left = open().length;
  let since = performance.now();
  while (left > 0 && performance.now() - since < STANDSTILL_MS) {
    await systemClock.sleep(100);
    const now = open().length;
    if (now < left) since = performance.now();
    left = now;
    if (performance.now() - since < QUIET_MS) continue;
    const forgotten = await Promise.all(open().map((job) => isForgotten(world, job, happened)));
    if (!forgotten.every((yes) => yes)) continue;
    const lost = new Set(open().map(({ id }) => id));
    forge.passSilence();
    await eventually(() => open().length === 0, {
      what: "the forge to end what nobody knows of",
      timeoutMs: 30_000,
    }).catch(() => {});
    return lost;
  }
  return new Set();
}
