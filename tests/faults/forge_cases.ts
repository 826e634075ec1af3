import { UpdateLogRequestSchema } from "../../proto/gen/runner/v1/messages_pb.ts";
import { fromBinary, toBinary } from "../../proto/runtime.ts";
import { systemClock } from "../../lib/clock.ts";
import { noFaults } from "../fakes/forge/faults.ts";
import { eventually } from "../support/eventually.ts";
import type { FaultCase } from "./case.ts";
import type { ForgeSide } from "./forge_side.ts";
import { checkJob, checkNothingLeft } from "./oracle.ts";
import { isFinalState } from "./points.ts";
import type { JobPlan, OutsideJob } from "./side.ts";
import type { World } from "./world.ts";

type ForgeWorld = World<ForgeSide>;

const GREEN = { results: ["success"], begins: [1], withinMs: 60_000 } as const;
const LEFT_MS = 75_000;
const AWAY_MS = 30_000;

/** A forge that misbehaves while jobs come and run. */
export const forgeCases: readonly FaultCase<ForgeSide>[] = [
  faulty("the version that the forge tells never moves", (world) => {
    world.side.fake.faults.versionFrozen = true;
    return oneAfterTheOther(world, 3);
  }),
  faulty("the forge hands a task out and never answers", async (world) => {
    world.side.fake.faults.handOutAndHang = 1;
    const lost = await world.side.start();
    await eventually(() => world.side.fake.faults.handOutAndHang === 0, {
      what: "the task to be handed out",
    });
    const others = await oneAfterTheOther(world, 2);
    world.side.passSilence();
    const gone = { results: ["failure"], begins: [0], withinMs: 30_000, forgotten: true } as const;
    await checkJob(world, lost, gone);
    return `${others}; the lost one is failed by the forge's time-out`;
  }),
  faulty("the forge hands a task out twice", async (world) => {
    const held = await world.side.start({ held: true });
    await began(held);
    world.side.fake.faults.handOutTwice = 3;
    const second = await world.side.start();
    await checkJob(world, second, GREEN);
    await eventually(() => world.side.fake.faults.handOutTwice === 0, {
      what: "tasks to be handed out again",
      timeoutMs: 30_000,
    });
    await held.letGo();
    await checkJob(world, held, GREEN);
    return "3 times again, each job began once";
  }),
  faulty("every second call fails with Internal", (world) => {
    world.side.fake.faults.internalEverySecond = true;
    return oneAfterTheOther(world, 3);
  }),
  faulty("fetches are throttled and echo the version", (world) => {
    world.side.fake.faults.throttled = 5;
    return oneAfterTheOther(world, 2);
  }),
  faulty("the forge stores half of the rows of each call", async (world) => {
    using _ = world.side.proxy.rewrite(({ name, request }) => {
      if (name !== "UpdateLog") return null;
      const log = fromBinary(UpdateLogRequestSchema, request);
      if (log.rows.length < 2) return null;
      return toBinary(UpdateLogRequestSchema, {
        ...log,
        rows: log.rows.slice(0, Math.ceil(log.rows.length / 2)),
        noMore: false,
      });
    });
    return await oneAfterTheOther(world, 1);
  }),
  faulty("the last row fails with 500", (world) => {
    world.side.fake.faults.failLastRow = 3;
    return oneAfterTheOther(world, 1);
  }),
  faulty("the forge calls the runner unregistered for 30 s", async (world) => {
    const held = await world.side.start({ held: true });
    await began(held);
    world.side.fake.faults.unauthenticated = true;
    const waiting = await world.side.start();
    await held.letGo();
    await systemClock.sleep(AWAY_MS);
    world.side.fake.faults.unauthenticated = false;
    const first = await checkJob(world, held, GREEN);
    const second = await checkJob(world, waiting, GREEN);
    return `the running job's end after ${seconds(first)}, a new one's after ${seconds(second)}`;
  }),
  faulty("the answer to the final state is lost three times", async (world) => {
    let lost = 0;
    const point = world.side.proxy.hold((call) =>
      call.answer !== null && isFinalState(call) && lost < 3
    );
    const job = await world.side.start();
    await point.reached;
    lost = 1;
    point.drop();
    for (; lost < 3; lost++) {
      using again = world.side.proxy.hold((call) => call.answer !== null && isFinalState(call));
      await again.reached;
      again.drop();
    }
    const end = await checkJob(world, job, GREEN);
    return `ended after ${seconds(end)}`;
  }),
  faulty("a proxy refuses bodies over 2 KiB with 413", async (world) => {
    world.side.fake.faults.bodyLimit = 2048;
    return await oneAfterTheOther(world, 1, { rows: 400 });
  }),
  faulty("the forge is away for 30 s while a job runs and another waits", async (world) => {
    const held = await world.side.start({ held: true });
    await began(held);
    world.side.proxy.down = true;
    const waiting = await world.side.start();
    await held.letGo();
    await systemClock.sleep(AWAY_MS);
    world.side.proxy.down = false;
    const first = await checkJob(world, held, GREEN);
    const second = await checkJob(world, waiting, GREEN);
    return `the running job's end after ${seconds(first)}, a new one's after ${seconds(second)}`;
  }),
];

function faulty(name: string, body: (world: ForgeWorld) => Promise<string>): FaultCase<ForgeSide> {
  return {
    name,
    async run(world) {
      const { faults } = world.side.fake;
      try {
        const figures = await body(world);
        Object.assign(faults, noFaults());
        const left = await checkNothingLeft(world, LEFT_MS);
        return `${figures}; nothing left after ${left.toFixed(1)} s`;
      } finally {
        Object.assign(faults, noFaults());
        world.side.proxy.down = false;
      }
    },
  };
}

/** Starts jobs when the one before has ended, so that each is a fetch of its own. */
async function oneAfterTheOther(world: World, count: number, plan: JobPlan = {}): Promise<string> {
  const took: string[] = [];
  for (let i = 0; i < count; i++) {
    const job = await world.side.start(plan);
    took.push(seconds(await checkJob(world, job, GREEN)));
  }
  return `ended after ${took.join(", ")}`;
}

async function began(job: OutsideJob): Promise<void> {
  await eventually(async () => (await job.lines()).includes("begin"), {
    what: "the job to begin",
    timeoutMs: 30_000,
  });
}

function seconds(end: { readonly seconds: number }): string {
  return `${end.seconds.toFixed(1)} s`;
}
