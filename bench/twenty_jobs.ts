import { type ControllerProcess, startController } from "./controller_process.ts";
import { startOfficialRunner } from "./official_runner.ts";
import { machineSeconds, phasesOf } from "./phases.ts";
import { ALONE, pause, type RealJobs, say, startRealJobs } from "./real_jobs.ts";
import { percentile, type Row, spread } from "./report.ts";

const JOBS = 20;
const CAPACITY = 4;
const numbers = Array.from({ length: JOBS }, (_, index) => index + 1).join(", ");
const steps = (work: string) => (times: string) =>
  `    strategy:\n      matrix:\n        n: [${numbers}]\n    steps:\n` +
  `      - run: date +%s%3N > ${times}/\${{ github.run_id }}-\${{ matrix.n }}\n` +
  `      - run: ${work}\n`;

interface Sample {
  readonly seconds: number;
  /** Processor time of the whole machine meanwhile. */
  readonly work: number;
}

/**
 * Twenty jobs queued at once, capacity 4, real Gitea: from the dispatch until Gitea shows all of them
 * as done; jobs that do nothing, and jobs of three seconds. The official runner with capacity 4 by
 * itself is the reference; both take turns.
 */
export async function benchTwentyJobs(options: { readonly rounds: number }): Promise<Row[]> {
  await using jobs = await startRealJobs({ trivial: steps("true"), long: steps("sleep 3") });
  await using _alone = await startOfficialRunner(jobs, { label: ALONE, capacity: CAPACITY });
  await using ours = await startController(jobs, {
    name: "ours",
    port: jobs.peers.port(0),
    capacity: CAPACITY,
  });
  const rows: Row[] = [];
  for (const [kind, what] of [["trivial", "trivial jobs"], ["long", "jobs of 3 s"]] as const) {
    const samples = { alone: [] as Sample[], ours: [] as Sample[] };
    for (let i = 0; i < options.rounds; i++) {
      for (const side of ["alone", "ours"] as const) {
        const sample = await ours.watch(runTwenty(jobs, `${kind}-${side}`));
        samples[side].push(sample);
        say(`twenty ${what} ${i + 1}/${options.rounds} ${side}: ${sample.seconds.toFixed(1)} s`);
      }
    }
    rows.push(await rowOf(`${JOBS} ${what} at capacity ${CAPACITY}`, samples, ours));
  }
  return rows;
}

async function runTwenty(jobs: RealJobs, workflow: string): Promise<Sample> {
  await pause(2_000 + Math.random() * 2_000);
  const before = await machineSeconds();
  const { run, at } = await jobs.dispatch(workflow);
  await jobs.done(run, 180_000);
  const sample = { seconds: (Date.now() - at) / 1_000, work: await machineSeconds() - before };
  const started = (await jobs.stepTimes(run)).length;
  if (started !== JOBS) throw new Error(`Run ${run}: ${started} of ${JOBS} jobs wrote a time`);
  return sample;
}

async function rowOf(
  what: string,
  samples: Readonly<Record<"alone" | "ours", readonly Sample[]>>,
  ours: ControllerProcess,
): Promise<Row> {
  const seconds = (side: "alone" | "ours") => samples[side].map((sample) => sample.seconds);
  const work = (side: "alone" | "ours") =>
    (percentile(samples[side].map((sample) => sample.work), 0.5) / JOBS).toFixed(2);
  return {
    what,
    unit: "s",
    referenceName: "official runner by itself",
    reference: percentile(seconds("alone"), 0.5),
    ours: percentile(seconds("ours"), 0.5),
    bound: { kind: "at_most", value: 1, of: "ratio" },
    notes: [
      `official runner by itself: ${spread(seconds("alone"))} s, ` +
      `${work("alone")} processor seconds a job`,
      `ours: ${spread(seconds("ours"))} s, ${work("ours")} processor seconds a job`,
      `ours by phase, p50 of all jobs so far: ${await phasesOf(ours.origin)}`,
    ],
  };
}
