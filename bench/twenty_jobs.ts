import { startController } from "./controller_process.ts";
import { startOfficialRunner } from "./official_runner.ts";
import { ALONE, pause, say, startRealJobs } from "./real_jobs.ts";
import { percentile, type Row, spread } from "./report.ts";

const JOBS = 20;
const CAPACITY = 4;
const numbers = Array.from({ length: JOBS }, (_, index) => index + 1).join(", ");
const STEPS = (times: string) =>
  `    strategy:\n      matrix:\n        n: [${numbers}]\n    steps:\n` +
  `      - run: date +%s%3N > ${times}/\${{ github.run_id }}-\${{ matrix.n }}\n`;

/**
 * Twenty trivial jobs queued at once, capacity 4, real Gitea: from the dispatch until Gitea shows all
 * of them as done. The official runner with capacity 4 by itself is the reference; both take turns.
 */
export async function benchTwentyJobs(options: { readonly rounds: number }): Promise<Row> {
  await using jobs = await startRealJobs({ twenty: STEPS });
  await using _alone = await startOfficialRunner(jobs, { label: ALONE, capacity: CAPACITY });
  await using ours = await startController(jobs, {
    name: "ours",
    port: jobs.peers.port(0),
    capacity: CAPACITY,
  });
  const samples = { alone: [] as number[], ours: [] as number[] };
  for (let i = 0; i < options.rounds; i++) {
    for (const side of ["alone", "ours"] as const) {
      await pause(2_000 + Math.random() * 2_000);
      const { run, at } = await jobs.dispatch(`twenty-${side}`);
      await ours.watch(jobs.done(run, 180_000));
      const seconds = (Date.now() - at) / 1_000;
      const started = (await jobs.stepTimes(run)).length;
      if (started !== JOBS) throw new Error(`Run ${run}: ${started} of ${JOBS} jobs wrote a time`);
      samples[side].push(seconds);
      say(`twenty jobs ${i + 1}/${options.rounds} ${side}: ${seconds.toFixed(1)} s`);
    }
  }
  return {
    what: `${JOBS} jobs at capacity ${CAPACITY}`,
    unit: "s",
    referenceName: "official runner by itself",
    reference: percentile(samples.alone, 0.5),
    ours: percentile(samples.ours, 0.5),
    bound: { kind: "at_most", value: 1, of: "ratio" },
    notes: [
      `official runner by itself: ${spread(samples.alone)} s`,
      `ours: ${spread(samples.ours)} s`,
    ],
  };
}
