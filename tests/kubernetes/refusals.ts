import assert from "node:assert/strict";
import { createAuthority } from "../../clients/x509/trust_domain.ts";
import type { ExecutorView, Page } from "../../controller/views/views.ts";
import { isObject } from "../../lib/json_object.ts";
import { eventually } from "../support/eventually.ts";
import type { KubeObject } from "../support/kube_client.ts";
import { at, MANIFESTS } from "../support/kube_manifests.ts";
import { LISTEN, NAMESPACE } from "./cluster.ts";
import type { NodePod } from "./node_pod.ts";
import { askForTask, fetchSvid, launchOf, pemOf, signedBySpire, svidOf } from "./peer_calls.ts";
import { type Session, startSession } from "./session.ts";
import type { Stage } from "./stage.ts";

const PODS = `/api/v1/namespaces/${NAMESPACE.executors}/pods`;
const POLICY = "validatingadmissionpolicybinding/gitea-dynamic-runner-executors";
const NO_IDENTITY = /no identity issued/;

/** Two jobs that run, and what is tried beside them. */
interface Scene {
  readonly stage: Stage;
  readonly session: Session;
  readonly mine: Job;
  readonly other: Job;
}

interface Job {
  readonly run: number;
  readonly executor: NodePod;
  readonly pod: KubeObject;
}

/** Everybody who is not the executor of a job, tried one after the other; the log says why. */
export async function checkRefusals(stage: Stage): Promise<void> {
  const { cluster: { peers: { kube } } } = stage;
  await using session = await startSession(stage, {
    env: { LOG_LEVEL: "debug", POD_CAPACITY: "6" },
  });
  const [mine, other] = await Promise.all(
    ["long", "other"].map((name) => begin(stage, session, name)),
  );
  if (mine === undefined || other === undefined) throw new Error("There are no two jobs");
  const scene = { stage, session, mine, other };
  await checkOutsiders(scene);
  await checkPeers(scene);
  // Without the policy, which lets none of these Pods be made.
  await kube.kubectl(["delete", POLICY]);
  try {
    await eventually(() => kube.kubectl(["create"], { stdin: plainPod("policy-is-off") }), {
      what: "the policy to be off",
      timeoutMs: 30_000,
      everyMs: 500,
    });
    await kube.kubectl(["delete", "pod", "policy-is-off", "-n", NAMESPACE.executors]);
    await checkCopies(scene);
    await checkSquatter(scene);
    await checkReplay(scene);
  } finally {
    await kube.kubectl(["apply", "-f", `${MANIFESTS}admission-policy.yaml`]);
  }
  await stage.report.attempt("the end of the other job", async () => {
    await stage.gitea.cancel(stage.repository, other.run);
    await session.ended(other.run, 60_000);
  });
}

async function begin(stage: Stage, session: Session, name: string): Promise<Job> {
  const run = await stage.gitea.dispatch(stage.repository, `${name}.yaml`);
  await session.logged(run, /it has begun/);
  const executor = stage.cluster.kubelet.pod(await session.executor(run));
  if (executor === undefined) throw new Error(`The job "${name}" has no executor`);
  return { run, executor, pod: await stage.cluster.client.call("GET", `${PODS}/${executor.name}`) };
}

async function checkOutsiders({ stage, mine }: Scene): Promise<void> {
  const { report, cluster } = stage;
  await report.check("refused: a process outside the Pod, of the same user", async () => {
    assert.match(await fetchSvid(cluster, { pod: mine.executor }), /SPIFFE ID:\s+spiffe:/);
    assert.match(await fetchSvid(cluster), NO_IDENTITY);
    return "inside served, outside: no identity issued";
  });
}

async function checkPeers({ stage, session, mine, other }: Scene): Promise<void> {
  const { report, cluster } = stage;
  const leader = cluster.kubelet.pod(await stage.replicas.leader());
  const facade = `https://${leader?.ip}:${LISTEN.facade}`;
  const svid = await svidOf(cluster, mine.executor);
  const ask = (tls: Partial<typeof svid>, job: Job) =>
    askForTask(facade, { ...svid, ...tls }, launchOf(job.pod));
  const tried = async (name: string, work: () => Promise<string>, why: RegExp) => {
    await report.check(`refused: ${name}`, async () => {
      const since = new Date().toISOString();
      const answer = await work();
      assert.match(answer, /^(403 |no connection)/);
      return `${answer.slice(0, 60)}; log: ${await said(session, { since, why })}`;
    });
  };
  await tried(
    "an executor with another job's SVID",
    () => ask({}, other),
    /SPIFFE ID|another|not this assignment's|no offer/,
  );
  const trustDomain = cluster.peers.spire.trustDomain;
  const uri = `spiffe://${trustDomain}/ci/peeradmin/kube/long`;
  await tried("an SVID of another trust domain", async () => {
    const authority = await createAuthority("other.example", Date.now());
    const issued = await authority.issue({
      uris: ["spiffe://other.example/ci/peeradmin/kube/long"],
      now: Date.now(),
      ttlMs: 3_600_000,
    });
    return await ask(pemOf(issued), mine);
  }, /TLS refused|certificate|trust domain|not of/);
  await tried("an SVID of another trust domain, signed by a trusted CA", async () => {
    return await ask(await signedBySpire(cluster, ["spiffe://other.example/ci/a/b/c"]), mine);
  }, /not of "example\.org"|certificate/);
  await tried("two URI names", async () => {
    return await ask(await signedBySpire(cluster, [uri, `${uri}-2`]), mine);
  }, /URI|name/);
  await tried("no certificate", () => {
    return ask({ cert: undefined, key: undefined }, mine);
  }, /TLS refused|certificate/);
}

/** The first line of the controllers' log since then that fits; waits for it. */
async function said(
  session: Session,
  { since, why }: { readonly since: string; readonly why: RegExp },
): Promise<string> {
  let last: string[] = [];
  return await eventually(async () => {
    const lines = (await session.controllerLog()).filter((line) => String(line.time) >= since);
    last = lines.map((line) => `${line.msg} ${line.detail ?? JSON.stringify(line.error ?? "")}`);
    return last.find((line) => why.test(line));
  }, { what: `a line of the log with ${why}`, timeoutMs: 40_000, everyMs: 200 }).catch((cause) => {
    throw new Error(`${cause}; its lines: ${last.join("; ").slice(0, 600)}`);
  });
}

/** A Pod that looks for an identity and says what it got. */
function plainPod(name: string, like?: KubeObject): string {
  const metadata = like === undefined ? {} : {
    labels: at(like, "metadata", "labels"),
    annotations: at(like, "metadata", "annotations"),
  };
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: NAMESPACE.executors, ...metadata },
    spec: {
      serviceAccountName: "gitea-task-executor",
      restartPolicy: "Never",
      terminationGracePeriodSeconds: 1,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: 2000,
        runAsGroup: 2000,
        seccompProfile: { type: "RuntimeDefault" },
      },
      volumes: [{ name: "api", csi: { driver: "csi.spiffe.io", readOnly: true } }],
      containers: [{
        name: "executor",
        image: "gitea-dynamic-runner-executor:0.1.0",
        command: [
          "/bin/sh",
          "-c",
          "for i in 1 2 3 4 5 6; do spire-agent api fetch x509 -timeout 5s " +
          "-socketPath /spiffe-workload-api/spire-agent.sock; sleep 0.5; done; echo tried; exec sleep 300",
        ],
        volumeMounts: [{ name: "api", mountPath: "/spiffe-workload-api", readOnly: true }],
        securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
      }],
    },
  });
}

/** Resolves when the Pod has tried to get an identity, and checks that it got none. */
async function gotNone({ stage }: Scene, name: string): Promise<void> {
  let log = "";
  await eventually(async () => {
    log = await stage.cluster.kubelet.pod(name)?.log().catch(() => "") ?? "";
    return log.includes("tried");
  }, { what: `"${name}" to have tried`, timeoutMs: 60_000, everyMs: 200 });
  assert.doesNotMatch(log, /SPIFFE ID:/);
  assert.match(log, NO_IDENTITY);
}

async function shownAs(session: Session, name: string): Promise<ExecutorView> {
  return await eventually(async () => {
    const { items } = await session.get("/api/v1/executors?limit=100") as Page<ExecutorView>;
    return items.find((one) => one.name === name && one.ownership !== "ours");
  }, { what: `"${name}" to be shown as none of ours`, timeoutMs: 60_000, everyMs: 300 });
}

async function checkCopies(scene: Scene): Promise<void> {
  const { stage: { report, cluster: { peers: { kube } } }, session, mine } = scene;
  await report.check("refused: a Pod with copied labels and annotations", async () => {
    const since = new Date().toISOString();
    await kube.kubectl(["create"], { stdin: plainPod("a-copy", mine.pod) });
    await gotNone(scene, "a-copy");
    const { ownership, why } = await shownAs(session, "a-copy");
    const line = await said(session, { since, why: /executor without assignment/ });
    await kube.kubectl(["delete", "pod", "a-copy", "-n", NAMESPACE.executors]);
    return `no identity, shown as ${ownership}: ${why}; log: ${line.slice(0, 80)}`;
  });
}

async function checkSquatter(scene: Scene): Promise<void> {
  const { stage, session, mine, other } = scene;
  const { report, gitea, repository, cluster: { client, peers: { kube } } } = stage;
  await report.check("refused: a squatter under an executor's name", async () => {
    const since = new Date().toISOString();
    const tasks = [mine, other].map(({ executor }) => Number(executor.name.split("-").at(-1)));
    const name = mine.executor.name.replace(/\d+$/, String(Math.max(...tasks) + 1));
    await kube.kubectl(["create"], { stdin: plainPod(name) });
    const run = await gitea.dispatch(repository, "quick.yaml");
    const { reason } = await eventually(async () => {
      const found = await session.assignment(run);
      return found.reason !== null &&
        /name|taken|another|squat|not ours/i.test(found.reason.detail) &&
        found;
    }, { what: "the conflict to be shown", timeoutMs: 60_000, everyMs: 300 });
    await gotNone(scene, name);
    const entry = `/apis/spire.spiffe.io/v1alpha1/clusterstaticentries/${name}`;
    assert.equal(await client.call("GET", entry).then(() => "there", () => "none"), "none");
    const line = await said(session, { since, why: new RegExp(`${name}|conflict|taken`) });
    await kube.kubectl(["delete", "pod", name, "-n", NAMESPACE.executors]);
    const [job] = (await session.ended(run, 120_000)).jobs;
    assert.equal(job?.status, "success", await session.log(run));
    return `${reason?.code}: ${reason?.detail.slice(0, 70)}; log: ${
      line.slice(0, 60)
    }; success when it was gone`;
  });
}

async function checkReplay(scene: Scene): Promise<void> {
  const { stage, session, mine } = scene;
  const { report, gitea, repository, cluster: { kubelet, client, peers: { kube } } } = stage;
  await report.check("refused: the replayed annotations of a deleted executor", async () => {
    const { name } = mine.executor;
    await gitea.cancel(repository, mine.run);
    await session.ended(mine.run, 60_000);
    await eventually(() => kubelet.pod(name) === undefined, {
      what: `"${name}" to be gone`,
      timeoutMs: 150_000,
      everyMs: 300,
    });
    const since = new Date().toISOString();
    await kube.kubectl(["create"], { stdin: plainPod(name, mine.pod) });
    const seen = await Promise.race([
      shownAs(session, name).then(({ ownership, why }) => `shown as ${ownership}: ${why}`),
      eventually(async () => !await isThere(client.call("GET", `${PODS}/${name}`)), {
        what: "its deletion",
        timeoutMs: 60_000,
        everyMs: 300,
      }).then(() => "deleted as a leftover"),
    ]);
    const entry = `/apis/spire.spiffe.io/v1alpha1/clusterstaticentries/${name}`;
    assert.equal(await isThere(client.call("GET", entry)), false);
    if (seen.startsWith("shown")) {
      await gotNone(scene, name);
      await said(session, { since, why: /executor without assignment/ });
      await kube.kubectl(["delete", "pod", name, "-n", NAMESPACE.executors]);
    }
    return `no identity, ${seen}`;
  });
}

async function isThere(call: Promise<unknown>): Promise<boolean> {
  return await call.then(isObject, () => false);
}
