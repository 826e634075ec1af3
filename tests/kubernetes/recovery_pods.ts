import assert from "node:assert/strict";
import { createPodBackend } from "../../backends/pod/pod_backend.ts";
import { NO_TEMPLATE } from "../../backends/pod/template.ts";
import { createKubernetes } from "../../clients/kubernetes/client.ts";
import { createExecutorCluster } from "../../clients/kubernetes/executor_cluster.ts";
import { connectNats } from "../../clients/nats/connection.ts";
import { createControlStore } from "../../clients/nats/control_store.ts";
import { createRecords } from "../../clients/nats/records.ts";
import { executorName, instanceOf } from "../../controller/model/ids.ts";
import { systemClock } from "../../lib/clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { Secret } from "../../lib/secret.ts";
import { createOwnership } from "../../wiring/ownership.ts";
import { eventually } from "../support/eventually.ts";
import { KEPT_JOB, keptAssignment, keptRecord } from "../support/kept_jobs.ts";
import type { KubeClient } from "../support/kube_client.ts";
import { at } from "../support/kube_manifests.ts";
import { EXECUTOR_IMAGE } from "./cluster.ts";
import { NATS_PASSWORD } from "./replicas.ts";
import { startSession } from "./session.ts";
import type { Stage } from "./stage.ts";

const PODS = 1000;
const AT_ONCE = 16;
const LIMIT_MS = 5_000;
const AGENT = "spiffe://example.org/node";
const ENTRIES = "/apis/spire.spiffe.io/v1alpha1/clusterstaticentries";

/**
 * Start-up with a thousand executors of ours, made by the Pod backend with the rights of the controller's
 * service account: each with its signature, its identity entry, its record and its claim.
 */
export async function checkRecovery(stage: Stage): Promise<void> {
  const { cluster, installation, report, gitea, repository, signal } = stage;
  const { peers, client, kubelet } = cluster;
  const call = { signal };
  const deps = { logger: silentLogger, clock: systemClock };
  {
    // Makes the streams; whoever leads next takes over from it.
    await using _first = await startSession(stage);
  }
  await using stack = new AsyncDisposableStack();
  const path = await peers.kube.kubeconfig(`${peers.folder}/recovery.kubeconfig`, {
    namespace: installation.controller,
    serviceAccount: "controller",
  });
  const kubernetes = stack.use(await createKubernetes({ kind: "kubeconfig", path }, deps));
  const connection = stack.use(connectNats({
    servers: [peers.nats.url],
    user: installation.natsUser,
    password: new Secret(NATS_PASSWORD),
    credsFile: null,
    caFile: null,
  }, deps));
  const records = stack.use(createRecords(connection, deps));
  // Parts that were played before have had leaders of their own.
  const epoch = await createControlStore(connection, deps).epoch(call);
  kubelet.holdBy((pod) =>
    at(pod, "metadata", "annotations", "ci.ddupan.top/job-key") === KEPT_JOB
      ? { kind: "creating" }
      : undefined
  );
  const { trustDomain } = peers.spire;
  const infos = Array.from(
    { length: PODS },
    (_, index) => keptAssignment(index, { backend: "pod", repository, trustDomain }),
  );
  stack.defer(async () => {
    const ours = "labelSelector=ci.ddupan.top%2Frunner%3Dtrue";
    await client.call("DELETE", `${ENTRIES}?${ours}`, {});
    await client.call("DELETE", `/api/v1/namespaces/${installation.executors}/pods?${ours}`, {});
    await inParts(infos, (info) => records.delete(info.taskId, call));
    await eventually(async () => await countOf(client, installation.executors) === 0, {
      what: "the end of the Pods",
      timeoutMs: 120_000,
      everyMs: 500,
    });
    kubelet.holdBy(() => undefined);
  });
  const made = await report.attempt(`making ${PODS} Pods`, async () => {
    const secret = await client.call(
      "GET",
      `/api/v1/namespaces/${installation.controller}/secrets/controller`,
    );
    const text = (name: string) =>
      new TextDecoder().decode(Uint8Array.fromBase64(String(at(secret, "data", name)))).trim();
    const instance = await instanceOf(text("GITEA_RUNNER_UUID"), installation.executors);
    const ownership = createOwnership({
      keys: [new Secret(text("CAPABILITY_KEY"))],
      prefix: "ci.ddupan.top",
      instance,
      trustDomain,
    });
    const backend = createPodBackend({
      cluster: createExecutorCluster(kubernetes, {
        namespace: installation.executors,
        clock: systemClock,
      }),
      pods: {
        image: EXECUTOR_IMAGE,
        serviceAccount: "gitea-task-executor",
        userId: 2000,
        template: NO_TEMPLATE,
        spiffeVolume: { kind: "csi" },
        endpointSocket: "unix:///spiffe-workload-api/spire-agent.sock",
      },
      // Of a class that no controller manager has: SPIRE is not what is measured.
      identity: { instance, prefix: "ci.ddupan.top", className: "nobody", agentId: AGENT },
      guard: () => {},
      ...deps,
    });
    await inParts(infos, async (info) => {
      const name = executorName(instance, info.id);
      const nonce = crypto.randomUUID();
      const metadata = await ownership.compose(name, info, nonce);
      const environment = { CI_ASSIGNMENT_ID: info.id };
      const executor = await backend.create(
        { name, metadata, environment, assignment: info },
        call,
      );
      await backend.bindIdentity(executor, info, call);
      const claimed = keptRecord(info, { epoch, nonce, executor });
      await records.create(info.taskId, claimed, call);
    });
  });
  if (!made) return;
  await report.check(`${PODS} Pods to recover: start-up to consuming`, async () => {
    const run = await gitea.dispatch(repository, "quick.yaml");
    await using session = await startSession(stage, { env: { POD_CAPACITY: String(PODS + 4) } });
    const [name = ""] = session.names;
    // The leader's label may be there before.
    const lines = await eventually(async () => {
      const said = await session.controllerLog();
      return said.some(({ msg }) => msg === "backend recovered") && said;
    }, { what: "the end of the recovery", timeoutMs: 60_000, everyMs: 100 });
    const line = lines.find((one) => one.msg === "backend recovered");
    assert.equal(line?.executors, PODS, JSON.stringify(line));
    const started = kubelet.pod(name)?.startedAt ?? 0;
    const sinceStart = (message: string) =>
      Date.parse(String(lines.find((one) => one.msg === message)?.time)) - started;
    const [ms, ledMs] = [sinceStart("backend recovered"), sinceStart("leading")];
    const text = `${ms} ms after the start of its process, ${ms - ledMs} ms after it led`;
    assert.ok(ms < LIMIT_MS, text);
    const [job] = (await session.ended(run)).jobs;
    assert.equal(job?.status, "success", await session.log(run));
    return `${PODS} with their entries: ${text}`;
  });
}

async function inParts<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  for (let from = 0; from < items.length; from += AT_ONCE) {
    await Promise.all(items.slice(from, from + AT_ONCE).map(work));
  }
}

async function countOf(client: KubeClient, namespace: string): Promise<number> {
  const { items } = await client.call("GET", `/api/v1/namespaces/${namespace}/pods`);
  return Array.isArray(items) ? items.length : 0;
}
