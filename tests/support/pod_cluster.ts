import type { Kubernetes } from "../../clients/kubernetes/client.ts";
import { createKubernetes } from "../../clients/kubernetes/client.ts";
import { createExecutorCluster } from "../../clients/kubernetes/executor_cluster.ts";
import { systemClock } from "../../lib/clock.ts";
import type { ExecutorCluster } from "../../backends/pod/cluster.ts";
import { createKubeClient, type KubeClient, type KubeObject } from "./kube_client.ts";
import { MANIFESTS } from "./kube_manifests.ts";
import { type Peers, startPeers } from "./peers.ts";

/** Namespace of the executors in the shipped manifests. */
export const EXECUTORS = "gitea-actions";

/** A real cluster with the shipped rights, and two ways to it. */
export interface PodCluster extends AsyncDisposable {
  readonly peers: Peers;
  /** With every right: plays what people, kubelets and schedulers do. */
  readonly admin: KubeClient;
  /** With the controller's service account, as the program has it. */
  readonly kubernetes: Kubernetes;
  readonly cluster: ExecutorCluster;
  readonly podsPath: string;
  /** Writes a Pod's status. */
  status(name: string, status: KubeObject): Promise<void>;
  /** Removes every executor and entry. */
  clear(): Promise<void>;
}

/**
 * Starts kube-apiserver with a node that runs Pods by word only, SPIRE and spire-controller-manager, and
 * applies the shipped manifests.
 */
export async function startPodCluster(): Promise<PodCluster> {
  await using stack = new AsyncDisposableStack();
  const peers = stack.use(await startPeers({ which: ["kube", "fakenode", "spire", "scm"] }));
  const { kube } = peers;
  for (const file of ["namespaces", "service-accounts", "rbac", "admission-policy"]) {
    await kube.kubectl(["apply", "-f", `${MANIFESTS}${file}.yaml`]);
  }
  await kube.kubectl(["apply", "-f", `${MANIFESTS}examples/node-uid.yaml`]);
  const path = await kube.kubeconfig(`${peers.folder}/controller.kubeconfig`, {
    namespace: "gitea-dynamic-runner",
    serviceAccount: "controller",
  });
  const admin = stack.use(await createKubeClient(kube));
  const options = { clock: systemClock };
  const kubernetes = stack.use(await createKubernetes({ kind: "kubeconfig", path }, options));
  const podsPath = `/api/v1/namespaces/${EXECUTORS}/pods`;
  const entriesPath = "/apis/spire.spiffe.io/v1alpha1/clusterstaticentries";
  const cluster = createExecutorCluster(kubernetes, { namespace: EXECUTORS, ...options });
  // Connections that a test opens are its own leak: these are opened now.
  await cluster.listPods({}, { signal: AbortSignal.timeout(10_000) });
  const moved = stack.move();
  return {
    peers,
    admin,
    kubernetes,
    cluster,
    podsPath,
    async status(name, status) {
      await admin.call("PATCH", `${podsPath}/${name}/status`, { status });
    },
    async clear() {
      await admin.call("DELETE", entriesPath);
      await admin.call("DELETE", podsPath, { gracePeriodSeconds: 0 });
    },
    [Symbol.asyncDispose]: () => moved.disposeAsync(),
  };
}
