import assert from "node:assert/strict";
import { startHangProxy } from "../support/hang_proxy.ts";
import { watchExecutors } from "./executors.ts";
import { startSession } from "./session.ts";
import { type Stage, userOf } from "./stage.ts";

const STALL_MS = 90_000;
const LOST = /^scheduler leadership lost: /;

/** The API server stalls without a reset, and is restarted, while jobs come in. */
export async function checkApiOutage(stage: Stage): Promise<void> {
  const { report, gitea, repository, cluster, audit, installation } = stage;
  await using proxy = startHangProxy(cluster.peers.kube.port);
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
      const ends = (await session.controllerLog()).filter((one) =>
        one.msg === "runner stopped" && Date.parse(String(one.time)) >= since
      );
      const wrong = ends.filter((one) => !LOST.test(String(one.error)));
      assert.deepEqual(wrong, [], "replicas that ended and had not lost the Lease");
      const user = userOf(installation.controller, "controller");
      const lists = (await audit.records()).filter((one) =>
        one.user === user && one.verb === "list" && one.resource === "pods" &&
        one.receivedAt >= since &&
        one.namespace === installation.executors
      );
      const most = mostInASecond(lists.map((one) => one.receivedAt));
      assert.ok(most <= 1, `${most} lists of Pods in a second`);
      return `8 jobs done ${seconds} s after it, ${ends.length} replicas ended with the lost Lease, ` +
        `${lists.length} lists of Pods, at most ${most} in a second`;
    });
  };
  await during(`stalled without reset for ${STALL_MS / 1000} s`, async () => {
    proxy.hang();
    await new Promise((resolve) => setTimeout(resolve, STALL_MS));
    proxy.resume();
  });
  await during("restarted", async () => {
    await cluster.peers.script("kube.sh", "stop");
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    await cluster.peers.script("kube.sh", "start");
  });
  await report.check("nothing is left after the outages", async () => {
    await session.nothingLeft(120_000);
    return "no Pod, no entry";
  });
}

function namesMadeTwice(seen: readonly { readonly name: string }[]): string[] {
  const names = seen.map((one) => one.name);
  return names.filter((name, index) => names.indexOf(name) !== index);
}

function mostInASecond(times: readonly number[]): number {
  return Math.max(
    0,
    ...times.map((from) => times.filter((at) => at >= from && at < from + 1_000).length),
  );
}
