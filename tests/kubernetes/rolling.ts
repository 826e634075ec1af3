import assert from "node:assert/strict";
import type { BackendView, Page } from "../../controller/views/views.ts";
import { type OutsideCounter, startOutsideCounter } from "../e2e/outside_counter.ts";
import { eventually } from "../support/eventually.ts";
import { watchExecutors } from "./executors.ts";
import { type Session, startSession } from "./session.ts";
import type { Stage } from "./stage.ts";
import { MANY_JOBS } from "./workflows.ts";

/** Fifty gates start on two cores. */
const BEGIN_MS = 400_000;
const END_MS = 240_000;

/**
 * All replicas are replaced, one after the other, while 50 jobs run in Pods with the real gate and the
 * official runner. The jobs hold on at a server outside of everything until the last replica is new.
 */
export async function checkRollingRestart(stage: Stage): Promise<void> {
  const { report, gitea, repository, cluster } = stage;
  const env = { POD_CAPACITY: String(MANY_JOBS) };
  await using counter = startOutsideCounter();
  await using executors = watchExecutors(cluster.client, cluster.kubelet);
  await using session = await startSession(stage, { count: 2, env });
  await report.check(
    `rolling restart of all replicas under ${MANY_JOBS} running jobs: ${MANY_JOBS} succeed, each ran once`,
    async () => {
      const since = performance.now();
      const run = await gitea.dispatch(repository, "many.yaml", { counter: counter.url });
      await allHold(counter);
      const beganMs = performance.now() - since;
      const rolledMs = await roll(stage, session, env);
      assert.equal(counter.holding, MANY_JOBS, "jobs that still run");
      counter.release();
      const { jobs } = await session.ended(run, END_MS);
      const good = jobs.filter((job) => job.status === "success").length;
      assert.equal(good, MANY_JOBS, jobs.map((job) => job.status).join(" "));
      const once = Array.from({ length: MANY_JOBS }, (_, index) => String(index)).sort();
      assert.deepEqual(counter.begun.toSorted(), once, "jobs that began");
      assert.deepEqual(counter.ended.toSorted(), once, "jobs that ended");
      assert.equal(counter.mostAtOnce, MANY_JOBS);
      const names = executors.seen().map(({ name }) => name);
      assert.equal(new Set(names).size, names.length, `Pods made twice: ${names.join(" ")}`);
      assert.equal(names.length, MANY_JOBS, "Pods");
      return `real gates and official runners; all ran after ${seconds(beganMs)}, ` +
        `both replicas replaced in ${seconds(rolledMs)}, ${names.length} Pods`;
    },
  );
  await report.check("slots are full again, and nothing is left", async () => {
    const since = performance.now();
    await session.nothingLeft(180_000);
    await eventually(async () => {
      const [pod] = (await session.get("/api/v1/backends") as Page<BackendView>).items;
      return pod?.capacity === MANY_JOBS && pod.used === 0 && pod.free === MANY_JOBS;
    }, { what: `${MANY_JOBS} free slots`, timeoutMs: 10_000, everyMs: 100 });
    return `${MANY_JOBS} free; no Pod, no entry after ${seconds(performance.now() - since)}`;
  });
}

/** As the Deployment says: one more first, then one of the old ones goes. Gives the time it took. */
async function roll(
  { replicas }: Stage,
  session: Session,
  env: Readonly<Record<string, string>>,
): Promise<number> {
  const since = performance.now();
  const old = [...session.names];
  for (const name of old) {
    session.names.push(await replicas.add({ env }));
    await replicas.remove(name);
    session.names.splice(session.names.indexOf(name), 1);
  }
  const leader = await replicas.leader();
  assert.ok(session.names.includes(leader) && !old.includes(leader), `"${leader}" leads`);
  return performance.now() - since;
}

async function allHold(counter: OutsideCounter): Promise<void> {
  await eventually(() => counter.holding === MANY_JOBS, {
    what: `${MANY_JOBS} jobs to run`,
    timeoutMs: BEGIN_MS,
    everyMs: 250,
  }).catch((cause) => {
    throw new Error(`${counter.holding} of ${MANY_JOBS} run`, { cause });
  });
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
