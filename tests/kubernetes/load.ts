import assert from "node:assert/strict";
import { eventually } from "../support/eventually.ts";
import { watchExecutors } from "./executors.ts";
import { type Session, startSession } from "./session.ts";
import { startStallProxy } from "./stall_proxy.ts";
import { type Stage, userOf } from "./stage.ts";
import { MANY_JOBS } from "./workflows.ts";

const END_MS = 400_000;
const STALL_MS = 90_000;

/** All replicas are replaced, one after the other, while 50 jobs run. */
export async function checkRollingRestart(stage: Stage): Promise<void> {
  const { report, replicas, gitea, repository, cluster } = stage;
  const env = { POD_CAPACITY: String(MANY_JOBS) };
  await using executors = watchExecutors(cluster.client, cluster.kubelet);
  await using session = await startSession(stage, { count: 2, env });
  await report.check(
    `rolling restart of all replicas under ${MANY_JOBS} running jobs`,
    async () => {
      const run = await gitea.dispatch(repository, "many.yaml");
      await allRun(stage, run);
      const since = performance.now();
      for (const old of [...session.names]) {
        // As the Deployment says: one more first, then one of the old ones goes.
        session.names.push(await replicas.add({ env }));
        await replicas.remove(old);
        session.names.splice(session.names.indexOf(old), 1);
      }
      const rolledMs = performance.now() - since;
      const text = await allSucceed(session, run);
      const twice = namesMadeTwice(executors.seen());
      assert.deepEqual(twice, [], "Pods that were made twice");
      return `${text}, rolled in ${(rolledMs / 1000).toFixed(1)} s, no Pod twice`;
    },
  );
  await report.check("nothing is left after the rolling restart", async () => {
    await session.nothingLeft(180_000);
    return "no Pod, no entry";
  });
}

/** The API server stalls without a reset, and is restarted, while jobs come in. */
export async function checkApiOutage(stage: Stage): Promise<void> {
  const { report, gitea, repository, cluster, audit, installation } = stage;
  await using proxy = startStallProxy(cluster.peers.kube.port);
  await using executors = watchExecutors(cluster.client, cluster.kubelet);
  await using session = await startSession(stage, {
    count: 2,
    env: { POD_CAPACITY: "4", KUBERNETES_SERVICE_PORT: String(proxy.port) },
  });
  const during = async (name: string, outage: () => Promise<void>) => {
    await report.check(`kube-apiserver ${name}: recovers, nothing lost, no Pod twice`, async () => {
      const since = Date.now();
      const runs: number[] = [];
      for (let index = 0; index < 4; index++) {
        runs.push(await gitea.dispatch(repository, "quick.yaml"));
      }
      await outage();
      const back = performance.now();
      for (let index = 0; index < 4; index++) {
        runs.push(await gitea.dispatch(repository, "quick.yaml"));
      }
      for (const run of runs) {
        const [job] = (await session.ended(run, 240_000)).jobs;
        assert.equal(job?.status, "success", await session.log(run));
      }
      const seconds = ((performance.now() - back) / 1000).toFixed(1);
      assert.deepEqual(namesMadeTwice(executors.seen()), [], "Pods that were made twice");
      const user = userOf(installation.controller, "controller");
      const lists = (await audit.records()).filter((one) =>
        one.user === user && one.verb === "list" && one.at >= since && one.resource === "pods"
      );
      const times = lists.map((one) => one.at);
      const [most, peak] = [mostWithin(times, 10_000), mostWithin(times, 1_000)];
      // Recovery, watch and the level-based list each begin with one when a replica takes over.
      assert.ok(most <= 10, `${most} lists of Pods within 10 s`);
      return `8 jobs done ${seconds} s after it, at most ${most} lists of Pods in 10 s, ${peak} in 1 s`;
    });
  };
  await during(`stalled without reset for ${STALL_MS / 1000} s`, async () => {
    proxy.stall();
    await new Promise((resolve) => setTimeout(resolve, STALL_MS));
    proxy.resume();
  });
  await during("restarted", async () => {
    await cluster.peers.script("kube.sh", "stop");
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    await cluster.peers.script("kube.sh", "start");
  });
}

/** Resolves when every job of the run has begun. */
async function allRun({ gitea, repository }: Stage, run: number): Promise<void> {
  let running = 0;
  await eventually(async () => {
    const { jobs } = await gitea.run(repository, run);
    running = jobs.filter((job) => job.status === "running").length;
    return running === MANY_JOBS;
  }, { what: `${MANY_JOBS} jobs to run`, timeoutMs: END_MS, everyMs: 500 }).catch((cause) => {
    throw new Error(`${running} of ${MANY_JOBS} run`, { cause });
  });
}

async function allSucceed(session: Session, run: number): Promise<string> {
  const { jobs } = await session.ended(run, END_MS);
  const good = jobs.filter((job) => job.status === "success").length;
  assert.equal(good, MANY_JOBS, jobs.map((job) => job.status).join(" "));
  return `${good} succeeded`;
}

function namesMadeTwice(seen: readonly { readonly name: string }[]): string[] {
  const names = seen.map((one) => one.name);
  return names.filter((name, index) => names.indexOf(name) !== index);
}

function mostWithin(times: readonly number[], ms: number): number {
  const sorted = times.toSorted((a, b) => a - b);
  return Math.max(
    0,
    ...sorted.map((from) => sorted.filter((at) => at >= from && at < from + ms).length),
  );
}
