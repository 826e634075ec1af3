/**
 * The contract of backends on a real API server, with the rights of the shipped manifests. Not found by
 * `deno task test`, which needs no cluster: `deno test -A tests/contract/backend_pod_kube.ts`.
 */
import assert from "node:assert/strict";
import { ClusterError } from "../../backends/pod/cluster.ts";
import { createPodBackend } from "../../backends/pod/pod_backend.ts";
import { NO_TEMPLATE } from "../../backends/pod/template.ts";
import type { Backend } from "../../controller/backend.ts";
import type { Instance } from "../../controller/model/ids.ts";
import { systemClock } from "../../lib/clock.ts";
import { objectOrEmpty } from "../../lib/json_object.ts";
import { silentLogger } from "../../lib/logger.ts";
import { eventually } from "../support/eventually.ts";
import { containerEnvironment, spiffeIdOf } from "../support/executor_pod.ts";
import { type PodCluster, startPodCluster } from "../support/pod_cluster.ts";
import { backendContract, specOf } from "./backend_suite.ts";

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
  { cluster, peers }: PodCluster,
  options: { readonly agentId?: string } = {},
): Backend {
  return createPodBackend({
    cluster,
    pods: {
      image: "registry.example.org/executor:1",
      serviceAccount: "gitea-task-executor",
      userId: USER_ID,
      template: NO_TEMPLATE,
      spiffeVolume: { kind: "csi" },
      endpointSocket: "unix:///run/spire/agent.sock",
    },
    identity: {
      instance: "0011223344" as Instance,
      prefix: "ci.example.org",
      className: peers.scm.className,
      agentId: options.agentId ?? peers.spire.parentId,
    },
    clock: systemClock,
    logger: silentLogger,
    guard() {},
  });
}

const { signal } = new AbortController();
const call = { signal };

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
