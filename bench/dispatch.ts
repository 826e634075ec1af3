import { startController } from "./controller_process.ts";
import { startOfficialRunner } from "./official_runner.ts";
import { phasesOf } from "./phases.ts";
import { ALONE, pause, type RealJobs, say, startRealJobs } from "./real_jobs.ts";
import { percentile, type Row, spread } from "./report.ts";

const STEP = (times: string) =>
  `    steps:\n      - run: date +%s%3N > ${times}/\${{ github.run_id }}-first\n`;

/**
 * From the call that dispatches a workflow to its first step, real Gitea, one job at a time,
 * alternating between the official runner by itself and the controller. Both are up and idle all the
 * time; a pause of random length keeps the dispatches from falling in step with anybody's polls.
 */
export async function benchDispatch(options: { readonly runs: number }): Promise<Row> {
  await using jobs = await startRealJobs({ first: STEP });
  await using _alone = await startOfficialRunner(jobs, { label: ALONE, capacity: 1 });
  await using ours = await startController(jobs, {
    name: "ours",
    port: jobs.peers.port(0),
    capacity: 4,
  });
  const samples = { alone: [] as number[], ours: [] as number[] };
  for (let i = 0; i < options.runs; i++) {
    for (const side of ["alone", "ours"] as const) {
      await pause(2_000 + Math.random() * 4_000);
      const ms = await ours.watch(timeToFirstStep(jobs, `first-${side}`));
      samples[side].push(ms);
      say(`dispatch ${i + 1}/${options.runs} ${side}: ${ms} ms`);
    }
  }
  const phases = await phasesOf(ours.origin);
  return {
    what: "dispatch to first step",
    unit: "ms, p50",
    referenceName: "official runner by itself",
    reference: percentile(samples.alone, 0.5),
    ours: percentile(samples.ours, 0.5),
    bound: { kind: "at_most", value: 0.5, of: "ratio" },
    notes: [
      `official runner by itself: ${spread(samples.alone)} ms`,
      `ours: ${spread(samples.ours)} ms`,
      `ours by phase, p50: ${phases}`,
    ],
  };
}

async function timeToFirstStep(jobs: RealJobs, workflow: string): Promise<number> {
  const { run, at } = await jobs.dispatch(workflow);
  await jobs.done(run, 60_000);
  const [first] = await jobs.stepTimes(run);
  if (first === undefined) throw new Error(`Read the time of run ${run}: its step wrote none`);
  return first - at;
}
