import assert from "node:assert/strict";
import { startPeers } from "../support/peers.ts";
import type { AuditRecord } from "./audit.ts";
import { applyManifests, type Installation, PORT } from "./cluster.ts";
import { createReplicas, giteaOf, makeSecret } from "./replicas.ts";
import { type Session, startSession } from "./session.ts";
import { type Stage, userOf } from "./stage.ts";
import { WORKFLOWS } from "./workflows.ts";

const JOBS = 3;
const WRITES = ["create", "update", "patch", "delete", "deletecollection"];

/**
 * Two installations on one cluster, each with a Gitea of its own, so that their tasks have equal numbers
 * and their jobs equal identities. Neither may touch what is the other's.
 */
export async function checkInstances(stage: Stage): Promise<void> {
  const { cluster, report, signal, installation } = stage;
  await using further = await startPeers({ which: ["gitea"], say: report.say, signal });
  const second: Installation = {
    controller: `${installation.controller}-b`,
    executors: `${installation.executors}-b`,
    giteaUrl: further.gitea.rootUrl,
    natsUser: "controller-b",
    service: PORT.secondService,
  };
  const gitea = giteaOf(further, signal);
  await applyManifests(cluster.peers, second);
  await gitea.createRepository("kube", { private: false });
  await gitea.commit(stage.repository, WORKFLOWS);
  await makeSecret(cluster, gitea, second);
  const other: Stage = {
    ...stage,
    installation: second,
    gitea,
    replicas: createReplicas(cluster, second),
  };
  await using mine = await startSession(stage);
  let theirs = await startSession(other);
  try {
    await report.check("two instances: jobs with equal task ids run side by side", async () => {
      const tasks = await Promise.all([quickJobs(stage, mine), quickJobs(other, theirs)]);
      assert.deepEqual(tasks[0], tasks[1], "the task ids");
      return `tasks ${tasks[0]?.join(", ")} of each Gitea succeeded`;
    });
    await report.check("two instances: one restarts while the other's job runs", async () => {
      const run = await stage.gitea.dispatch(stage.repository, "long.yaml");
      await mine.logged(run, /it has begun/);
      const executor = await mine.executor(run);
      const uid = cluster.kubelet.pod(executor)?.uid;
      await theirs[Symbol.asyncDispose]();
      theirs = await startSession(other);
      await quickJobs(other, theirs);
      assert.equal(cluster.kubelet.pod(executor)?.uid, uid);
      assert.match(await mine.leftovers(), new RegExp(`ClusterStaticEntry ${executor}`));
      await stage.gitea.cancel(stage.repository, run);
      const [job] = (await mine.ended(run)).jobs;
      assert.equal(job?.status, "cancelled");
      return "Pod and entry are where they were, the job goes on";
    });
    await report.check("two instances: neither wrote anything of the other's", async () => {
      await mine.nothingLeft(120_000);
      const records = await stage.audit.records();
      const [a, b] = [installation, second].map((one) => writesOf(records, one));
      assert.ok(a !== undefined && b !== undefined && a.length > 10 && b.length > 10);
      for (const [writes, foreign] of [[a, second], [b, installation]] as const) {
        const there = [foreign.controller, foreign.executors];
        assert.deepEqual(writes.filter((one) => there.includes(one.namespace)), []);
      }
      const names = (writes: readonly AuditRecord[]) =>
        new Set(
          writes.filter((one) => one.resource === "clusterstaticentries" && one.name !== "")
            .map((one) => one.name),
        );
      const shared = [...names(a)].filter((name) => names(b).has(name));
      assert.deepEqual(shared, []);
      return `${a.length} and ${b.length} writes, ${names(a).size} and ${
        names(b).size
      } entries, none shared`;
    });
  } finally {
    await theirs[Symbol.asyncDispose]();
  }
}

/** Task ids of some jobs that ran at once, in order. */
async function quickJobs(stage: Stage, session: Session): Promise<number[]> {
  const runs: number[] = [];
  for (let index = 0; index < JOBS; index++) {
    runs.push(await stage.gitea.dispatch(stage.repository, "quick.yaml"));
  }
  const tasks: number[] = [];
  for (const run of runs) {
    const [job] = (await session.ended(run)).jobs;
    assert.equal(job?.status, "success", await session.log(run));
    tasks.push(Number((await session.assignment(run)).taskId));
  }
  return tasks.sort((a, b) => a - b);
}

function writesOf(records: readonly AuditRecord[], at: Installation): AuditRecord[] {
  const user = userOf(at.controller, "controller");
  return records.filter((one) => one.user === user && WRITES.includes(one.verb));
}
