import assert from "node:assert/strict";
import { eventually } from "../support/eventually.ts";
import { quantile } from "../support/quantile.ts";
import { NAMESPACE } from "./cluster.ts";
import { watchExecutors } from "./executors.ts";
import { type Session, startSession } from "./session.ts";
import type { Stage } from "./stage.ts";

const JOBS = 20;

/** One job from Gitea to success by way of everything, then twenty in a row. */
export async function checkChain(stage: Stage): Promise<void> {
  const { cluster, report } = stage;
  await using executors = watchExecutors(cluster.client, cluster.kubelet);
  const started = performance.now();
  await using session = await startSession(stage, { count: 2 });
  const upMs = Math.round(performance.now() - started);
  await report.check("two replicas of the Deployment are ready, one leads", async () => {
    const leader = await stage.replicas.leader();
    assert.ok(session.names.includes(leader));
    return `${upMs} ms, "${leader}" leads`;
  });
  await checkOne(stage, session);
  await report.check(`${JOBS} jobs in a row succeed, one Pod each`, async () => {
    const before = executors.seen().length;
    for (let index = 0; index < JOBS; index++) {
      const run = await stage.gitea.dispatch(stage.repository, "quick.yaml");
      const [job] = (await session.ended(run)).jobs;
      assert.equal(job?.status, "success", `job ${index + 1}: ${await session.log(run)}`);
    }
    const seen = executors.seen().slice(before);
    assert.equal(seen.length, JOBS, "Pods made");
    // The log of the last one is read at the next event of its Pod, at the latest at its deletion.
    const times = await eventually(() => {
      const known = seen.flatMap((one) => one.firstCallMs ?? []);
      return known.length === JOBS && known;
    }, { what: "the first call of each Pod's gate to be seen", timeoutMs: 90_000 });
    return `Pod created to first mTLS call p50 ${quantile(times, 0.5)} ms, p95 ${
      quantile(times, 0.95)
    } ms, max ${quantile(times, 1)} ms`;
  });
  await report.check(`nothing is left of ${JOBS} jobs`, async () => {
    const since = performance.now();
    await session.nothingLeft(120_000);
    return `no Pod, no entry after ${((performance.now() - since) / 1000).toFixed(1)} s`;
  });
}

async function checkOne(stage: Stage, session: Session): Promise<void> {
  const { cluster: { peers, client }, report, gitea, repository } = stage;
  await report.check("a whole job: Gitea, Pod, SPIRE, mTLS, success", async () => {
    const run = await gitea.dispatch(repository, "hello.yaml");
    const [job] = (await session.ended(run)).jobs;
    const log = await session.log(run);
    assert.equal(job?.status, "success", log);
    const identity = `spiffe://${peers.spire.trustDomain}/ci/${repository}/hello`;
    assert.match(log, new RegExp(`user 2000, identity ${identity}`));
    assert.match(log, new RegExp(`SPIFFE ID:\\s+${identity}`));
    assert.match(log, /no capability/);
    assert.match(log, /Gitea answers/);
    return `identity ${identity}`;
  });
  await report.check("entry and Pod of the job are gone", async () => {
    const since = performance.now();
    await session.nothingLeft(90_000);
    const shown = await peers.spire.server(["entry", "show"]);
    assert.doesNotMatch(shown, new RegExp(`/ci/${repository}/`), "entries of SPIRE");
    return `${Math.round(performance.now() - since)} ms after the job, at SPIRE, too`;
  });
  await report.check("no secret is in the executors' namespace", async () => {
    const { items } = await client.call("GET", `/api/v1/namespaces/${NAMESPACE.executors}/secrets`);
    assert.deepEqual(items, []);
    return "none";
  });
}
