import { signalProcess } from "../../backends/process/proc.ts";
import type { FaultCase } from "./case.ts";
import { eventually } from "../support/eventually.ts";
import { theExecutor } from "./executors.ts";
import { checkJob, checkNothingLeft, type Expected, REASON } from "./oracle.ts";
import { type HeldMoment, type Point, POINTS, SEALED_NOT_ENDED } from "./points.ts";
import type { World } from "./world.ts";

/** Who is killed, and how it comes back. */
interface Victim {
  readonly name: string;
  readonly points: readonly Point[];
  kill(world: World, moment: HeldMoment, point: Point): Promise<void>;
  expected(point: Point): Expected;
}

/** A job that goes on as if nothing had happened. */
const GREEN: Expected = { results: ["success"], begins: [1], withinMs: 90_000 };
/** After the server is back nothing waits for an ack wait; the rest is the job. */
const SOON: Expected = { ...GREEN, withinMs: 15_000 };
/** Handed out, and then nobody knows of it: the forge's own time-out is the bound. */
const FORGOTTEN: Expected = {
  results: ["failure"],
  begins: [0],
  withinMs: 30_000,
  forgotten: true,
};
/** After the claim it is never run again. */
const LOST: Expected = {
  results: ["failure"],
  begins: [0, 1],
  withinMs: 90_000,
  reason: REASON,
};
/** An executor that has ended is deleted at once, one that stays after a minute. */
const LEFT_MS = 75_000;

const index = (name: string) => POINTS.findIndex((point) => point.name === name);
const CLAIM_MADE = index("the identity is bound, the claim is being made");
const FINAL_ACCEPTED = index("the final state is accepted and not marked");

const controller: Victim = {
  name: "controller",
  points: POINTS,
  async kill(world, moment) {
    await world.kill();
    moment.lose();
    await world.start();
  },
  expected: (point) => POINTS.indexOf(point) < 2 ? FORGOTTEN : GREEN,
};

const natsServer: Victim = {
  name: "nats-server",
  points: POINTS,
  async kill(world, moment, point) {
    await world.nats.kill9();
    if (point.way === "nats") moment.lose();
    else moment.goOn();
    await world.nats.restart();
  },
  expected: () => SOON,
};

const gate: Victim = {
  name: "gate",
  points: POINTS.filter((point) => point.executor),
  async kill(world, moment) {
    const { gate } = await theExecutor(world.place.runtimeDir);
    signalProcess(gate, "SIGKILL");
    moment.goOn();
  },
  expected(point) {
    const at = POINTS.indexOf(point);
    if (at < CLAIM_MADE || at >= FINAL_ACCEPTED) return GREEN;
    // The claim may have been recorded for the dead one, or another one is made.
    return at === CLAIM_MADE ? { ...LOST, results: ["failure", "success"] } : LOST;
  },
};

/** What the gate would repeat to the next controller is lost with it: the record has it. */
const both: Victim = {
  name: "controller and the gate",
  points: [SEALED_NOT_ENDED],
  async kill(world, moment) {
    const { gate } = await theExecutor(world.place.runtimeDir);
    await world.kill();
    signalProcess(gate, "SIGKILL");
    moment.lose();
    await world.start();
  },
  expected: () => GREEN,
};

/** The records, the flags and the epoch are lost: only the executor knows what it holds. */
const bucket: Victim = {
  name: "controller, and loss of the bucket,",
  points: POINTS.filter((point) => {
    const at = POINTS.indexOf(point);
    return at >= CLAIM_MADE && at < FINAL_ACCEPTED;
  }),
  async kill(world, moment) {
    await world.kill();
    moment.lose();
    await world.loseBucket();
    await world.start();
    const { sources: { nats } } = await world.get<
      { sources: { nats: { state: string; lastError: string | null } } }
    >("/api/v1/status");
    if (nats.state !== "degraded" || !nats.lastError?.includes("CI_RUNNER_STATE")) {
      throw new Error(`Look for the alarm: NATS is shown as ${nats.state}, ${nats.lastError}`);
    }
    if (!(await world.log()).includes("records lost")) {
      throw new Error("Look for the alarm: the log does not say that records are lost");
    }
  },
  expected: () => GREEN,
};

/** Somebody deletes the bucket, and no process is killed: the controller ends, and is started again. */
const bucketCase: FaultCase = {
  name: "the bucket is deleted while a job runs",
  async run(world) {
    const job = await world.side.start({ held: true });
    await eventually(async () => (await job.lines()).includes("begin"), {
      what: "the job to begin",
      timeoutMs: 30_000,
    });
    const before = performance.now();
    await world.loseBucket();
    await eventually(async () => (await world.log()).includes("scheduler leadership lost"), {
      what: "the controller to end by itself",
      timeoutMs: 30_000,
    });
    const ended = (performance.now() - before) / 1000;
    await world.kill();
    await world.start();
    await job.letGo();
    const { result, seconds } = await checkJob(world, job, GREEN);
    const left = await checkNothingLeft(world, LEFT_MS);
    return `the controller ended after ${ended.toFixed(1)} s, ` +
      `${result} after ${seconds.toFixed(1)} s, nothing left after ${left.toFixed(1)} s`;
  },
};

const VICTIMS = [controller, bucket, natsServer, gate, both];

/** SIGKILL of each victim at each point, and the loss of the bucket. */
export const killCases: readonly FaultCase[] = [
  bucketCase,
  ...VICTIMS.flatMap((victim) =>
    victim.points.map((point): FaultCase => ({
      name: `SIGKILL of the ${victim.name} when ${point.name}`,
      run: (world) => killAt(world, victim, point),
    }))
  ),
];

async function killAt(world: World, victim: Victim, point: Point): Promise<string> {
  using moment = point.arm(world);
  const job = await world.side.start({ held: point.held });
  await moment.reached(job);
  const before = performance.now();
  await victim.kill(world, moment, point);
  const back = (performance.now() - before) / 1000;
  if (point.held) await job.letGo();
  const expected = victim.expected(point);
  if (expected.forgotten) world.side.passSilence();
  const { result, seconds } = await checkJob(world, job, expected);
  const left = await checkNothingLeft(world, LEFT_MS);
  return `back in ${back.toFixed(1)} s, ${result} after ${seconds.toFixed(1)} s, ` +
    `nothing left after ${left.toFixed(1)} s`;
}
