/**
 * The contract of backends on a real API server, with the rights of the shipped manifests. Not found by
 * `deno task test`, which needs no cluster: a part of `deno task test:kubernetes`, and by itself
 * `deno test -A tests/contract/backend_pod_kube.ts`.
 */
import assert from "node:assert/strict";
import { ClusterError } from "../../backends/pod/cluster.ts";
import { createPodBackend } from "../../backends/pod/pod_backend.ts";
import { NO_TEMPLATE, parsePodTemplate, type PodTemplate } from "../../backends/pod/template.ts";
import { createExecutorCluster } from "../../clients/kubernetes/executor_cluster.ts";
import { type Backend, BackendError } from "../../controller/backend.ts";
import { executorName, type Instance } from "../../controller/model/ids.ts";
import { systemClock } from "../../lib/clock.ts";
import { objectOrEmpty } from "../../lib/json_object.ts";
import { silentLogger } from "../../lib/logger.ts";
import { callsWithin } from "../support/calls.ts";
import { eventually } from "../support/eventually.ts";
import { containerEnvironment, spiffeIdOf } from "../support/executor_pod.ts";
import { tellFigures } from "../support/figures.ts";
import { EXECUTORS, type PodCluster, startPodCluster } from "../support/pod_cluster.ts";
import { POD_IDENTITY, POD_SETTINGS } from "../support/pod_settings.ts";
import { backendContract } from "./backend_contract.ts";
import { specOf } from "./backend_suite.ts";

let world: PodCluster | undefined;
Deno.test.beforeAll(async () => {
  world = await startPodCluster();
});
Deno.test.afterAll(async () => {
  await world?.[Symbol.asyncDispose]();
});

function running(): PodCluster {
  assert.ok(world !== undefined);
  return world;
}

const USER_ID = 2000;

function open(
  { cluster, peers }: Pick<PodCluster, "cluster" | "peers">,
  options: {
    readonly agentId?: string;
    readonly template?: PodTemplate;
    readonly className?: string;
    readonly instance?: string;
  } = {},
): Backend {
  return createPodBackend({
    cluster,
    pods: { ...POD_SETTINGS, userId: USER_ID, template: options.template ?? NO_TEMPLATE },
    identity: {
      ...POD_IDENTITY,
      instance: (options.instance ?? "0011223344") as Instance,
      className: options.className ?? peers.scm.className,
      agentId: options.agentId ?? peers.spire.parentId,
    },
    clock: systemClock,
    logger: silentLogger,
    guard() {},
  });
}

const call = callsWithin(60_000);

backendContract("pod backend on a real API server", async () => {
  const world = running();
  await world.clear();
  const { admin, podsPath, cluster } = world;
  let lossy = false;
  return {
    backend: open({
      ...world,
      cluster: {
        ...cluster,
        async createPod(manifest, call) {
          const made = await cluster.createPod(manifest, call);
          if (!lossy) return made;
          lossy = false;
          throw new ClusterError("unknown_outcome", "connection lost");
        },
      },
    }),
    reopen: () => Promise.resolve(open(world)),
    async end(name, { code, line }) {
      await eventually(async () => {
        const { status } = await admin.call("GET", `${podsPath}/${name}`);
        return objectOrEmpty(status).phase === "Running";
      }, { what: `Pod "${name}" to run` });
      await world.status(name, {
        phase: code === 0 ? "Succeeded" : "Failed",
        containerStatuses: [{
          name: "executor",
          image: "registry.example.org/executor:1",
          imageID: "",
          ready: false,
          restartCount: 0,
          state: {
            terminated: {
              exitCode: code,
              reason: code === 0 ? "Completed" : "Error",
              message: `${line}\n`,
            },
          },
        }],
      });
    },
    async corrupt(name) {
      await admin.call("PATCH", `${podsPath}/${name}`, {
        metadata: { annotations: null, labels: { "ci.example.org/task-id": null } },
      });
    },
    async boundTo(name) {
      const pod = await cluster.getPod(name, call);
      return spiffeIdOf(await cluster.getEntry(name, call), pod?.uid, USER_ID);
    },
    async unbind(name) {
      const entry = await cluster.getEntry(name, call);
      if (entry !== undefined) await cluster.deleteEntry(entry, call);
    },
    async environmentOf(name) {
      return containerEnvironment(await admin.call("GET", `${podsPath}/${name}`));
    },
    loseNextAnswer() {
      lossy = true;
    },
    [Symbol.asyncDispose]: () => world.clear(),
  };
});

Deno.test("the entry of an executor is in SPIRE while it is there", async () => {
  const world = running();
  await world.clear();
  const backend = open(world);
  const spec = specOf("77", "pod");
  const shown = () =>
    world.peers.spire.server(["entry", "show", "-spiffeID", spec.assignment.identity.spiffeId]);
  const made = await backend.create(spec, call);
  await backend.bindIdentity(made, spec.assignment, call);
  const entry = await eventually(async () => {
    const text = await shown();
    return text.includes(made.uid) && text;
  }, { what: "the entry in SPIRE", timeoutMs: 20_000 });
  assert.match(entry, /X509-SVID TTL\s*: 300/);
  assert.match(entry, new RegExp(`Selector\\s*: k8s:pod-uid:${made.uid}`));
  assert.match(entry, /Selector\s*: unix:uid:2000/);
  await backend.delete(made, call);
  await eventually(async () => !(await shown()).includes(made.uid), {
    what: "the entry to be gone from SPIRE",
    timeoutMs: 20_000,
  });
});

Deno.test("a parent with the node's UID is that of the Pod's node", async () => {
  const world = running();
  await world.clear();
  const agentId = "spiffe://example.org/spire/agent/k8s_psat/test/{nodeUID}";
  const backend = open(world, { agentId });
  const spec = specOf("78", "pod");
  await backend.create(spec, call);
  const placed = await eventually(async () => {
    const found = await backend.find(spec.name, call);
    return found?.identityTarget == null ? undefined : found;
  }, { what: "the node" });
  await backend.bindIdentity(placed, spec.assignment, call);
  const node = await world.admin.call("GET", `/api/v1/nodes/${placed.node}`);
  const entry = await world.cluster.getEntry(spec.name, call);
  const uid = String(objectOrEmpty(node.metadata).uid);
  assert.equal(entry?.spec.parentID, agentId.replace("{nodeUID}", uid));
  await backend.bindIdentity(placed, spec.assignment, call);
  assert.equal((await world.cluster.getEntry(spec.name, call))?.uid, entry.uid, "left alone");
});

Deno.test("a used-up quota is named, and the Pod is surely not there", async () => {
  const world = running();
  await world.clear();
  const path = `/api/v1/namespaces/${EXECUTORS}/resourcequotas`;
  await world.admin.call("POST", path, {
    metadata: { name: "executors" },
    spec: { hard: { pods: "1" } },
  });
  try {
    // Nobody counts here: the controller manager does.
    const status = { hard: { pods: "1" }, used: { pods: "1" } };
    await world.admin.call("PATCH", `${path}/executors/status`, { status });
    const spec = specOf("79", "pod");
    const error = await eventually(async () => {
      const error = await open(world).create(spec, call).then(() => null, (error) => error);
      if (error === null) await world.clear();
      return error ?? undefined;
    }, { what: "the quota to hold" });
    assert.ok(error instanceof BackendError);
    assert.equal(error.code, "quota");
    assert.match(
      error.message,
      /^Make executor ".+": quota "executors" is used up: requested pods=1, used pods=1 of pods=1$/,
    );
    assert.equal(await open(world).find(spec.name, call), undefined);
  } finally {
    await world.admin.call("DELETE", `${path}/executors`);
  }
});

const refusals: readonly (readonly [string, string, string, RegExp])[] = [
  [
    "a template that the namespace's level refuses",
    "spec: {hostNetwork: true}",
    "refused",
    /violates PodSecurity "restricted:latest": host namespaces/,
  ],
  [
    "a field that no Pod has",
    "spec: {nodeSelectors: {a: b}}",
    "invalid",
    /unknown field "spec\.nodeSelectors"/,
  ],
  [
    "a value that no Pod may have",
    "spec: {dnsPolicy: Sometimes}",
    "invalid",
    /spec\.dnsPolicy: Unsupported value/,
  ],
];
for (const [what, text, code, message] of refusals) {
  Deno.test(`create() says what is wrong with ${what}`, async () => {
    const world = running();
    const template = parsePodTemplate(text, { metadataPrefix: "ci.example.org" });
    const attempt = open(world, { template }).create(specOf("80", "pod"), call);
    await assert.rejects(attempt, (error) => {
      assert.ok(error instanceof BackendError);
      assert.equal(error.code, code, error.message);
      assert.match(error.message, message);
      return true;
    });
  });
}

Deno.test("the right that is missing is named", async () => {
  const world = running();
  const elsewhere = createExecutorCluster(world.kubernetes, {
    namespace: "default",
    clock: systemClock,
  });
  const attempt = open({ ...world, cluster: elsewhere }).create(specOf("81", "pod"), call);
  await assert.rejects(attempt, (error) => {
    assert.ok(error instanceof BackendError);
    assert.equal(error.code, "refused");
    assert.match(
      error.message,
      /cannot create resource "pods".*: give the service account this right/,
    );
    return true;
  });
});

Deno.test("events about a Pod are written and read back by its UID", async () => {
  const world = running();
  await world.clear();
  const { uid, name } = await open(world).create(specOf("82", "pod"), call);
  const event = { type: "Warning", reason: "ExecutorLost", message: "was lost" } as const;
  await world.cluster.emitPodEvent({ name, uid }, event, call);
  await world.cluster.emitPodEvent({ name, uid: "of-another" }, event, call);
  assert.deepEqual(await world.cluster.listPodEvents({ name, uid }, call), [event]);
  const described = await world.peers.kube.kubectl(["-n", EXECUTORS, "describe", "pod", name]);
  assert.match(described, /Warning\s+ExecutorLost\s.*gitea-dynamic-runner\s+was lost/);
});

Deno.test("two instances with equal task ids leave each other's Pods and entries alone", async () => {
  const world = running();
  await world.clear();
  const instances = ["00000000aa", "00000000bb"] as const;
  const spec = specOf("83", "pod");
  const backends = instances.map((instance) => open(world, { instance }));
  const made = await Promise.all(backends.map(async (backend, i) => {
    const name = executorName(instances[i] as Instance, spec.assignment.id);
    const executor = await backend.create({ ...spec, name }, call);
    await backend.bindIdentity(executor, spec.assignment, call);
    return executor;
  }));
  const [one, two] = made;
  assert.ok(one !== undefined && two !== undefined);
  await backends[0]?.delete(one, call);
  await backends[0]?.list(call);
  assert.equal(await world.cluster.getEntry(one.name, call), undefined);
  const entry = await world.cluster.getEntry(two.name, call);
  assert.equal(spiffeIdOf(entry, two.uid, USER_ID), spec.assignment.identity.spiffeId);
  assert.equal((await backends[1]?.find(two.name, call))?.uid, two.uid);
});

Deno.test("1,000 executors are listed, with their entries, in a fraction of the recovery's 5 s", async () => {
  const world = running();
  await world.clear();
  await world.peers.script("fakenode.sh", "stop");
  try {
    // No controller manager of this class: SPIRE is not what is measured.
    const backend = open(world, { className: "nobody" });
    const tasks = Array.from({ length: 1_000 }, (_, i) => String(1_000 + i));
    const workers = Array.from({ length: 16 }, async () => {
      for (let task = tasks.pop(); task !== undefined; task = tasks.pop()) {
        const spec = specOf(task, "pod");
        await backend.bindIdentity(await backend.create(spec, call), spec.assignment, call);
      }
    });
    await Promise.all(workers);
    const took: number[] = [];
    for (let round = 0; round < 3; round++) {
      const start = performance.now();
      const listed = await open(world, { className: "nobody" }).list(call);
      took.push(Math.round(performance.now() - start));
      assert.equal(listed.length, 1_000);
    }
    tellFigures(`1,000 Pods and entries listed in ${took.join(", ")} ms`);
    assert.ok(Math.min(...took) < 2_500, `${took} ms`);
  } finally {
    await world.clear();
    await world.peers.script("fakenode.sh", "start");
  }
});
