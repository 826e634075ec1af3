import assert from "node:assert/strict";
import { connectNats } from "../../clients/nats/connection.ts";
import { createRecords } from "../../clients/nats/records.ts";
import type { AssignmentInfo } from "../../controller/model/assignment_info.ts";
import {
  assignmentIdOf,
  executorName,
  instanceOf,
  parseTaskId,
} from "../../controller/model/ids.ts";
import { spiffeIdOf } from "../../controller/model/identity.ts";
import { systemClock } from "../../lib/clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { Secret } from "../../lib/secret.ts";
import { createOwnership } from "../../wiring/ownership.ts";
import { eventually } from "../support/eventually.ts";
import { createKubeClient, type KubeClient } from "../support/kube_client.ts";
import { at } from "../support/kube_manifests.ts";
import { NATS_PASSWORD } from "./replicas.ts";
import { startSession } from "./session.ts";
import { type Stage, userOf } from "./stage.ts";

const PODS = 1000;
const AT_ONCE = 20;
const LIMIT_MS = 5_000;
const JOB = "kept";
/** Far above what this Gitea has given out. */
const FIRST_TASK = 5_000_000;

/** Start-up with a thousand executors of ours, each with its record and claim. */
export async function checkRecovery(stage: Stage): Promise<void> {
  const { cluster, installation, report, gitea, repository, signal } = stage;
  const { peers, client, kubelet } = cluster;
  // Makes the streams; whoever leads next takes over from it.
  await using _first = await startSession(stage);
  await _first[Symbol.asyncDispose]();
  await using stack = new AsyncDisposableStack();
  const controller = stack.use(
    await createKubeClient(peers.kube, { as: userOf(installation.controller, "controller") }),
  );
  const connection = stack.use(connectNats({
    servers: [peers.nats.url],
    user: installation.natsUser,
    password: new Secret(NATS_PASSWORD),
    ...{ credsFile: null, caFile: null },
  }, { logger: silentLogger, clock: systemClock }));
  const records = stack.use(
    createRecords(connection, { logger: silentLogger, clock: systemClock }),
  );
  kubelet.holdBy((pod) =>
    at(pod, "metadata", "annotations", "ci.ddupan.top/job-key") === JOB
      ? { kind: "creating" }
      : undefined
  );
  const infos = assignments(repository, peers.spire.trustDomain);
  stack.defer(async () => {
    const path = `/api/v1/namespaces/${installation.executors}/pods`;
    await client.call("DELETE", `${path}?labelSelector=ci.ddupan.top%2Frunner%3Dtrue`, {});
    await inParts(infos, (info) => records.delete(info.taskId, { signal }));
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
      trustDomain: peers.spire.trustDomain,
    });
    await inParts(infos, async (info) => {
      const name = executorName(instance, info.id);
      const nonce = crypto.randomUUID();
      const metadata = await ownership.compose(name, info, nonce);
      const pod = await controller.call(
        "POST",
        `/api/v1/namespaces/${installation.executors}/pods`,
        { apiVersion: "v1", kind: "Pod", metadata: { name, ...metadata }, spec: SPEC },
      );
      const now = Date.now();
      await records.create(info.taskId, {
        ...{ backend: "pod", repository, job: JOB, spiffeId: info.identity.spiffeId, fork: false },
        ...{ runId: null, giteaUrl: null, serverUrl: null, storedAt: now, nonce },
        uid: String(at(pod, "metadata", "uid")),
        claimedBy: { executor: name, gate: "0".repeat(32), at: now },
        ...{ logOffset: 0, steps: [], failures: 0, parkedUntil: null, released: null },
        ...{ terminal: null, epoch: 1 },
      }, { signal });
    });
  });
  if (!made) return;
  await report.check(`${PODS} Pods to recover: start-up to consuming`, async () => {
    const run = await gitea.dispatch(repository, "quick.yaml");
    await using session = await startSession(stage, { env: { POD_CAPACITY: String(PODS + 4) } });
    const [name = ""] = session.names;
    const lines = await session.controllerLog();
    const line = lines.find((one) => one.msg === "backend recovered");
    const [job] = (await session.ended(run)).jobs;
    assert.equal(job?.status, "success", await session.log(run));
    assert.equal(line?.executors, PODS, JSON.stringify(line));
    const started = kubelet.pod(name)?.startedAt ?? 0;
    const ms = Date.parse(String(line?.time)) - started;
    const ledMs = Date.parse(String(lines.find((one) => one.msg === "took over")?.time)) - started;
    assert.ok(ms < LIMIT_MS, `${ms} ms, of which ${ledMs} ms until it led`);
    return `${PODS} of ${PODS} after ${ms} ms, of which ${ledMs} ms until it led`;
  });
}

function assignments(repository: string, trustDomain: string): AssignmentInfo[] {
  const derived = spiffeIdOf({ repository, job: JOB, fork: false }, trustDomain);
  if (derived.kind === "permanent") throw new Error(derived.detail);
  return Array.from({ length: PODS }, (_, index) => {
    const taskId = parseTaskId(BigInt(FIRST_TASK + index));
    if (taskId === undefined) throw new RangeError("Make task id");
    return {
      ...{ id: assignmentIdOf(taskId), taskId, backend: "pod", identity: derived.identity },
      ...{ repository, job: JOB, runId: null, giteaUrl: null, serverUrl: null },
    };
  });
}

/** As an executor's, as far as admission looks at it. */
const SPEC = {
  serviceAccountName: "gitea-task-executor",
  automountServiceAccountToken: false,
  restartPolicy: "Never",
  terminationGracePeriodSeconds: 1,
  securityContext: {
    runAsNonRoot: true,
    runAsUser: 2000,
    runAsGroup: 2000,
    seccompProfile: { type: "RuntimeDefault" },
  },
  containers: [{
    name: "executor",
    image: "gitea-dynamic-runner-executor:0.1.0",
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
  }],
};

async function inParts<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  for (let from = 0; from < items.length; from += AT_ONCE) {
    await Promise.all(items.slice(from, from + AT_ONCE).map(work));
  }
}

async function countOf(client: KubeClient, namespace: string): Promise<number> {
  const { items } = await client.call("GET", `/api/v1/namespaces/${namespace}/pods`);
  return Array.isArray(items) ? items.length : 0;
}
