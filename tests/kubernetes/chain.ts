import assert from "node:assert/strict";
import { objectOrEmpty } from "../../lib/json_object.ts";
import { eventually } from "../support/eventually.ts";
import { at } from "../support/kube_manifests.ts";
import { NAMESPACE, PORT } from "./cluster.ts";
import { serveService } from "./service.ts";
import type { Stage } from "./stage.ts";
import { watchExecutors } from "./executors.ts";

const JOBS = 20;
const JOB_MS = 90_000;

/** One job from Gitea to success by way of everything, then twenty in a row. */
export async function checkChain(stage: Stage): Promise<void> {
  const { cluster, report, gitea, repository, replicas } = stage;
  const { client, peers, kubelet } = cluster;
  await using _service = await serveService(client, {
    namespace: NAMESPACE.controller,
    name: "facade",
  }, { port: peers.port(PORT.service), say: report.say });
  await using executors = watchExecutors(client, kubelet);
  const names: string[] = [];
  const up = await report.check("two replicas of the Deployment are ready, one leads", async () => {
    const started = performance.now();
    names.push(...await Promise.all([replicas.add(), replicas.add()]));
    const leader = await replicas.leader();
    assert.ok(names.includes(leader));
    return `${Math.round(performance.now() - started)} ms, "${leader}" leads`;
  });
  if (!up) return await removeAll(stage, names);

  await report.check("a whole job: Gitea, Pod, SPIRE, mTLS, success", async () => {
    const run = await gitea.dispatch(repository, "hello.yaml");
    const view = await ended(stage, run);
    const [job] = view.jobs;
    const log = job === undefined ? "" : await gitea.log(repository, job.id);
    assert.equal(job?.status, "success", log);
    const identity = `spiffe://${peers.spire.trustDomain}/ci/${repository}/hello`;
    assert.match(log, new RegExp(`user 2000, identity ${identity}`));
    assert.match(log, new RegExp(`SPIFFE ID:\\s+${identity}`));
    assert.match(log, /no capability/);
    assert.match(log, /Gitea answers/);
    return `identity ${identity}`;
  });
  await report.check("entry and Pod of the job are gone", async () => {
    const started = performance.now();
    await eventually(async () => await leftovers(stage) === "none", {
      what: "the end of Pod and entry",
      timeoutMs: 90_000,
      everyMs: 200,
    }).catch(async () => {
      throw new Error(`Still there: ${await leftovers(stage)}`);
    });
    return `${Math.round(performance.now() - started)} ms after the job`;
  });
  await report.check(`${JOBS} jobs in a row succeed, one Pod each`, async () => {
    const before = executors.seen().length;
    for (let index = 0; index < JOBS; index++) {
      const run = await gitea.dispatch(repository, "quick.yaml");
      const view = await ended(stage, run);
      assert.equal(view.jobs[0]?.status, "success", `job ${index + 1}`);
    }
    const seen = executors.seen().slice(before);
    assert.equal(seen.length, JOBS, "Pods made");
    const times = seen.flatMap((one) => one.firstCallMs ?? []).sort((a, b) => a - b);
    assert.equal(times.length, JOBS, "Pods whose gate met the facade");
    return `Pod created to first mTLS call p50 ${quantile(times, 0.5)} ms, p95 ${
      quantile(times, 0.95)
    } ms, max ${times.at(-1)} ms`;
  });
  await report.check("nothing is left of them", async () => {
    await eventually(async () => await leftovers(stage) === "none", {
      what: "the end of Pods and entries",
      timeoutMs: 120_000,
      everyMs: 500,
    }).catch(async () => {
      throw new Error(`Still there: ${await leftovers(stage)}`);
    });
    return "no Pod, no entry";
  });
  await removeAll(stage, names);
}

async function removeAll({ replicas, report }: Stage, names: readonly string[]): Promise<void> {
  await report.attempt("the end of the replicas", async () => {
    await Promise.all(names.map((name) => replicas.remove(name)));
  });
}

/** The run when it has ended. */
async function ended({ gitea, repository }: Stage, run: number) {
  return await eventually(async () => {
    const view = await gitea.run(repository, run);
    return view.done && view;
  }, { what: `the end of run ${run}`, timeoutMs: JOB_MS, everyMs: 100 });
}

/** Executors' Pods and entries of our class that are there; `none` without any. */
async function leftovers({ cluster: { client } }: Stage): Promise<string> {
  const [pods, entries] = await Promise.all([
    client.call("GET", `/api/v1/namespaces/${NAMESPACE.executors}/pods`),
    client.call("GET", "/apis/spire.spiffe.io/v1alpha1/clusterstaticentries"),
  ]);
  const names = [pods, entries].flatMap(({ items }) =>
    (Array.isArray(items) ? items : []).filter((one) =>
      objectOrEmpty(at(one, "metadata", "labels"))["ci.ddupan.top/runner"] === "true"
    ).map((one) => String(at(one, "metadata", "name")))
  );
  return names.length === 0 ? "none" : names.join(", ");
}

function quantile(sorted: readonly number[], share: number): number | undefined {
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)];
}
