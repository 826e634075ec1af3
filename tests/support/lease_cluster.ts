import { objectOrEmpty } from "../../lib/json_object.ts";
import { readManifest } from "./kube_manifests.ts";
import { type Peers, startPeers } from "./peers.ts";

/** The Lease of the product, where the manifests give rights to it. */
export const LEASE = { namespace: "gitea-actions", name: "dynamic-runner-scheduler" } as const;

/**
 * Makes `namespace` with a service account that has exactly the rights that the manifests give the
 * controller where its Lease is. Resolves to a kubeconfig of it that leads to `server`.
 */
export async function layElection(
  { kube, folder }: Pick<Peers, "kube" | "folder">,
  namespace: string,
): Promise<(options?: { readonly server?: string }) => Promise<string>> {
  const role = await readManifest("rbac.yaml", { kind: "Role", name: "executors" });
  const who = { namespace, serviceAccount: "controller" };
  const objects = [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } },
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: who.serviceAccount, namespace } },
    { ...role, metadata: { ...objectOrEmpty(role.metadata), namespace } },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "RoleBinding",
      metadata: { name: "executors", namespace },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "executors" },
      subjects: [{ kind: "ServiceAccount", name: who.serviceAccount, namespace }],
    },
  ];
  const list = { apiVersion: "v1", kind: "List", items: objects };
  await kube.kubectl(["apply"], { stdin: JSON.stringify(list) });
  let made = 0;
  return ({ server } = {}) =>
    kube.kubeconfig(
      `${folder}/${namespace}-${made++}.kubeconfig`,
      server === undefined ? who : { ...who, server },
    );
}

/** A real API server of its own, with what {@link layElection} makes in {@link LEASE}'s namespace. */
export interface LeaseCluster extends AsyncDisposable {
  readonly peers: Peers;
  /** Of the controller's service account. */
  readonly kubeconfig: string;
}

/** Starts a {@link LeaseCluster}. */
export async function startLeaseCluster(): Promise<LeaseCluster> {
  await using stack = new AsyncDisposableStack();
  const peers = stack.use(await startPeers({ which: ["kube"] }));
  const kubeconfig = await (await layElection(peers, LEASE.namespace))();
  const owned = stack.move();
  return { peers, kubeconfig, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
