import { MANIFESTS } from "./kube_manifests.ts";
import { type PeerName, type Peers, startPeers } from "./peers.ts";

/** The Lease of the product, where the manifests give rights to it. */
export const LEASE = { namespace: "gitea-actions", name: "dynamic-runner-scheduler" } as const;

/** Namespace of the controllers' Pods. */
export const CONTROLLERS = "gitea-dynamic-runner";

/** A real API server with the manifests' namespaces, service accounts and rights. */
export interface LeaseCluster extends AsyncDisposable {
  readonly peers: Peers;
  /** Of the controller's service account. */
  readonly kubeconfig: string;
}

/** Starts a {@link LeaseCluster}, and whatever else is asked for. */
export async function startLeaseCluster(
  options: {
    readonly also?: readonly PeerName[];
    readonly say?: (line: string) => void;
    readonly signal?: AbortSignal;
  } = {},
): Promise<LeaseCluster> {
  await using stack = new AsyncDisposableStack();
  const { also = [], ...others } = options;
  const peers = stack.use(await startPeers({ which: ["kube", ...also], ...others }));
  for (const file of ["namespaces.yaml", "service-accounts.yaml", "rbac.yaml"]) {
    await peers.kube.kubectl(["apply", "-f", `${MANIFESTS}${file}`]);
  }
  const kubeconfig = await peers.kube.kubeconfig(`${peers.folder}/controller.kubeconfig`, {
    namespace: CONTROLLERS,
    serviceAccount: "controller",
  });
  const owned = stack.move();
  return { peers, kubeconfig, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
