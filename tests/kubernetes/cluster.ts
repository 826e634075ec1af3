import { relative } from "node:path";
import { type Image, layControllerImage, layExecutorImage } from "../support/container_image.ts";
import { createKubeClient, type KubeClient } from "../support/kube_client.ts";
import { MANIFESTS } from "../support/kube_manifests.ts";
import { type Peers, startPeers } from "../support/peers.ts";
import { type Kubelet, startKubelet } from "./kubelet.ts";
import { patientClient } from "./patient_client.ts";

/** Names of the manifests. */
export const NAMESPACE = { controller: "gitea-dynamic-runner", executors: "gitea-actions" };

/** One installation on the cluster. */
export interface Installation {
  readonly controller: string;
  readonly executors: string;
  /** Gitea as jobs know it. */
  readonly giteaUrl: string;
  readonly natsUser: string;
  /** Index for `Peers.port` of the facade's Service. */
  readonly service: number;
}

/** The only installation, or the first of several. */
export function firstInstallation(peers: Peers): Installation {
  return {
    ...NAMESPACE,
    giteaUrl: peers.gitea.rootUrl,
    natsUser: "controller",
    service: PORT.service,
  };
}

/** A cluster with the manifests of `deploy/kubernetes/`, and a kubelet that runs what they say. */
export interface Cluster extends AsyncDisposable {
  readonly peers: Peers;
  readonly client: KubeClient;
  readonly kubelet: Kubelet;
  /** What the kubelet can pull, by name. */
  readonly images: Map<string, Image>;
  /** Folder with the Workload API's socket, as Pods have it. */
  readonly workloadApi: string;
  /** An address on loopback that no other run has; number 250 and up are free. */
  address(n: number): string;
}

/** The image that executors have in the shipped configuration. */
export const EXECUTOR_IMAGE = "gitea-dynamic-runner-executor:0.1.0";

/** Index for `Peers.port` of what tests listen on: facades and their Services. */
export const PORT = { service: 0, secondService: 1, chaos: 2 };
/** What controllers listen on, each on the address of its Pod. */
export const LISTEN = { facade: 8443, health: 8081, admin: 8080 };

/**
 * Starts the real servers, applies the manifests as they are (what every installation sets for itself is
 * set in an overlay) and starts the kubelet. Everything is stopped when it is disposed of.
 */
export async function startCluster(options: {
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
  /** Further variables of the peers' scripts. */
  readonly env?: Readonly<Record<string, string>>;
}): Promise<Cluster> {
  await using stack = new AsyncDisposableStack();
  const peers = stack.use(
    await startPeers({
      which: ["gitea", "nats", "kube", "spire", "scm"],
      attestPods: true,
      env: {
        GITEA_EXTRA: "DEFAULT_ACTIONS_URL = self",
        // As config.yaml and controller-identity.yaml have it.
        SPIRE_ALIAS: "spiffe://example.org/node",
        SCM_CLASS: "spire-mgmt-spire",
        ...options.env,
      },
      say: options.say,
      signal: options.signal,
    }),
  );
  const { kube, folder } = peers;
  const client = stack.use(await createKubeClient(kube));
  await applyManifests(peers, firstInstallation(peers));
  // Layers of an overlay may not lie in one another, and this machine's root is the lowest.
  const images = await Deno.makeTempDir({ dir: "/dev/shm", prefix: "gdr-images-" });
  stack.defer(() => Deno.remove(images, { recursive: true }));
  await Deno.chmod(images, 0o755);
  const [controller, executor] = await Promise.all([
    layControllerImage(peers.bin, `${images}/controller`),
    layExecutorImage(peers.bin, `${images}/executor`),
  ]);
  const workloadApi = `${folder}/workload-api`;
  await Deno.mkdir(workloadApi);
  await Deno.chmod(workloadApi, 0o755);
  // Where the CSI driver has it: the agent's socket alone, not the server's beside it.
  await Deno.link(peers.spire.agentSocket, `${workloadApi}/spire-agent.sock`);
  // One block of addresses for each block of ports.
  const block = Math.floor(kube.port / 40) % 60_000;
  const address = (n: number) => `127.${64 + (block >> 8)}.${block & 255}.${1 + (n % 254)}`;
  const pullable = new Map([
    ["gitea-dynamic-runner:0.1.0", controller],
    [EXECUTOR_IMAGE, executor],
  ]);
  const kubelet = stack.use(
    await startKubelet({
      access: kube,
      client: patientClient(client),
      inpod: `${peers.scripts}/inpod.sh`,
      folder: `${folder}/pods`,
      workloadApi,
      images: pullable,
      node: "node-1",
      podIp: (n) => address(n % 240),
      say: options.say,
    }),
  );
  const owned = stack.move();
  return {
    peers,
    client,
    kubelet,
    images: pullable,
    workloadApi,
    address,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/**
 * Applies the manifests with what an installation sets for itself, as docs/install.md says: an overlay,
 * and for a further installation other names.
 */
export async function applyManifests(peers: Peers, at: Installation): Promise<void> {
  const { kube, folder } = peers;
  const overlay = `${folder}/overlay-${at.controller}`;
  await Deno.mkdir(overlay);
  const named = { namespace: NAMESPACE.controller, name: "controller" };
  const write = (name: string, value: unknown) =>
    Deno.writeTextFile(`${overlay}/${name}`, JSON.stringify(value));
  await write("config.yaml", {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: named,
    data: {
      GITEA_URL: at.giteaUrl,
      NATS_URL: peers.nats.url,
      TRUST_DOMAIN: peers.spire.trustDomain,
      RUNNER_FACADE_URL: `https://127.0.0.1:${peers.port(at.service)}`,
    },
  });
  // All Pods share this machine's network: each listens on its own address.
  const listen = Object.entries(LISTEN).map(([name, port]) => ({
    name: name === "facade" ? "RUNNER_FACADE_LISTEN" : `${name.toUpperCase()}_LISTEN`,
    value: `$(POD_IP):${port}`,
  }));
  const env = [
    { name: "POD_IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } },
    ...listen,
  ];
  await write("deployment.yaml", {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: named,
    spec: { template: { spec: { containers: [{ name: "controller", env }] } } },
  });
  await write("kustomization.yaml", {
    resources: [relative(await Deno.realPath(overlay), MANIFESTS)],
    patches: [{ path: "config.yaml" }, { path: "deployment.yaml" }],
  });
  const identity = await Deno.readTextFile(`${MANIFESTS}examples/controller-identity.yaml`);
  const text = `${await kube.kubectl(["kustomize", overlay])}\n---\n${identity}`;
  await kube.kubectl(["apply"], {
    stdin: text
      // Names, but not those of images.
      .replace(/gitea-dynamic-runner(?!(-executor)?:\d)/g, at.controller)
      .replaceAll(NAMESPACE.executors, at.executors),
  });
}
