import { type ControllerProcess, startController } from "./controller_process.ts";
import { pause, type RealJobs, say, startRealJobs } from "./real_jobs.ts";
import type { Row } from "./report.ts";

const BOUND_MIB = 200;
const BOUND_EXECUTORS = 500;

/**
 * Resident memory of the controller with `executors` jobs running at a time; the reference is the
 * same process before the first job. What it would be with 500 follows from the difference.
 */
export async function benchMemory(options: { readonly executors: number }): Promise<Row> {
  const { executors } = options;
  const numbers = Array.from({ length: executors }, (_, index) => index + 1).join(", ");
  await using jobs = await startRealJobs({
    hold: (times) =>
      `    strategy:\n      matrix:\n        n: [${numbers}]\n    steps:\n` +
      `      - run: |\n          date +%s%3N > ${times}/\${{ github.run_id }}-\${{ matrix.n }}\n` +
      `          while [ ! -e ${times}/stop ]; do sleep 1; done\n`,
  });
  await using ours = await startController(jobs, {
    name: "ours",
    port: jobs.peers.port(0),
    capacity: executors,
  });
  await pause(3_000);
  const idle = await ours.residentMiB();
  say(`memory idle: ${idle.toFixed(0)} MiB`);
  const { busy, after } = await ours.watch(hold(jobs, ours, executors));
  const each = (busy - idle) / executors;
  return {
    what: `memory at ${executors} executors`,
    unit: "MiB",
    referenceName: "the same process idle",
    reference: idle,
    ours: busy,
    bound: { kind: "at_most", value: BOUND_MIB, of: "ours" },
    notes: [
      `${(each * 1024).toFixed(0)} KiB per executor, so about ${
        (idle + each * BOUND_EXECUTORS).toFixed(0)
      } MiB at ${BOUND_EXECUTORS} (bound there: ${BOUND_MIB})`,
      `${after.toFixed(0)} MiB after the last job`,
    ],
  };
}

/** Runs the jobs; resolves to the most memory while all of them run, and to that after the last. */
async function hold(jobs: RealJobs, ours: ControllerProcess, executors: number) {
  const { run } = await jobs.dispatch("hold-ours");
  const end = performance.now() + 300_000;
  while ((await jobs.stepTimes(run)).length < executors) {
    if (performance.now() > end) throw new Error(`Wait for ${executors} executors: not all run`);
    await pause(500);
  }
  const samples: number[] = [];
  for (let i = 0; i < 10; i++) {
    await pause(1_000);
    samples.push(await ours.residentMiB());
  }
  const busy = Math.max(...samples);
  say(`memory with ${executors} executors: ${busy.toFixed(0)} MiB`);
  await Deno.writeTextFile(`${jobs.peers.folder}/times/stop`, "");
  await jobs.done(run, 300_000);
  await pause(3_000);
  return { busy, after: await ours.residentMiB() };
}
