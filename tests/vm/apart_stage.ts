import assert from "node:assert/strict";
import type { BackendName } from "../../controller/model/ids.ts";
import type { SourceName } from "../../controller/views/views.ts";
import { prepareProduct } from "../e2e/by_product.ts";
import type { Report } from "../e2e/report.ts";
import { EXECUTOR_IMAGE, NAMESPACE, startCluster } from "../kubernetes/cluster.ts";
import { giteaOf } from "../kubernetes/replicas.ts";
import type { Alone } from "../support/contract_suites.ts";
import type { GiteaApi } from "../support/gitea_api.ts";
import { type HangProxy, startHangProxy } from "../support/hang_proxy.ts";
import { at, listAt } from "../support/kube_manifests.ts";
import { type Peers, startPeers } from "../support/peers.ts";
import { AGENT_ROUND, startGuestAgent } from "./apart_agent.ts";
import { APART_WORKFLOWS, WAITING } from "./apart_jobs.ts";
import { startVmController, type VmController } from "./controller.ts";
import { type Platform, startPlatform } from "./platform.ts";
import { openSandboxObjects } from "./sandbox_objects.ts";
import type { Stage } from "./stage.ts";

/** One backend of the controller, and the way to the server that it depends on. */
export interface Side {
  readonly backend: BackendName;
  /** That server, as the API calls it. */
  readonly source: SourceName;
  readonly way: HangProxy;
  /** What is there of jobs: executors and identity entries, in words. */
  left(): Promise<string[]>;
}

/** One controller with both backends, each with a way that can be stalled. */
export interface Apart extends AsyncDisposable {
  readonly sides: Readonly<Record<BackendName, Side>>;
  readonly controller: VmController;
  readonly platform: Platform;
  readonly gitea: GiteaApi;
  /** `owner/name` of the repository with the workflows of `apart_jobs.ts`. */
  readonly repository: string;
  readonly report: Report;
  /** The suite is to end. */
  readonly signal: AbortSignal;
}

/** Those that wait, one that runs on, and one more. */
const CAPACITY = WAITING + 2;

/**
 * Starts the cluster of the Pods' suite, and beside it opensandbox-server on its stand-in of an API server:
 * who stalls the way to the one leaves the other alone. The controller is one process without a Lease,
 * which it would lose with the way to the API server. Everything is stopped when it is disposed of.
 */
export async function startApart({ report, signal }: Alone): Promise<Apart> {
  await using stack = new AsyncDisposableStack();
  const { say } = report;
  const cluster = stack.use(
    await startCluster({
      say,
      signal,
      env: { SPIRE_SYNC: AGENT_ROUND, SPIRE_RELOAD: AGENT_ROUND },
    }),
  );
  const beside = stack.use(
    await startPeers({
      which: ["opensandbox"],
      env: { OS_POOL_MAX: "20", OS_POOL_WAIT: "3", OS_CREATE_WAIT: "20" },
      say,
      signal,
    }),
  );
  const peers: Peers = { ...cluster.peers, opensandbox: beside.opensandbox };
  const giteaUrl = peers.gitea.rootUrl;
  const gitea = giteaOf(peers, signal);
  await gitea.createRepository("apart", { private: false });
  const repository = `${gitea.user}/apart`;
  await gitea.commit(repository, APART_WORKFLOWS);
  const logFolder = `${peers.folder}/logs`;
  const base = await prepareProduct(peers, gitea, { giteaUrl, logFolder, signal });
  const image = cluster.images.get(EXECUTOR_IMAGE) ?? assert.fail("no image of the executor");
  const { workloadApi } = cluster;
  const stage: Stage = {
    peers,
    gitea,
    repository,
    base,
    image,
    workloadApi,
    report,
    signal,
    // What it is made of is on the stack.
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
  const agent = stack.use(await startGuestAgent(peers, signal));
  const spire = { ...peers.spire, parentId: agent.spiffeId };
  const platform = stack.use(
    startPlatform({ ...stage, peers: { ...peers, spire } }, { agent: agent.folder }),
  );
  const pods = stack.use(startHangProxy(peers.kube.port));
  const sandboxes = stack.use(startHangProxy(Number(new URL(peers.opensandbox.url).port)));
  const controller = stack.use(
    await startVmController(stage, {
      COMPONENTS: "scheduler,pod-worker,vm-worker",
      KUBECONFIG: await peers.kube.kubeconfig(`${peers.folder}/apart.kubeconfig`, {
        namespace: NAMESPACE.controller,
        serviceAccount: "controller",
        server: `https://127.0.0.1:${pods.port}`,
      }),
      POD_NAMESPACE: NAMESPACE.executors,
      POD_EXECUTOR_IMAGE: EXECUTOR_IMAGE,
      SPIRE_AGENT_ID: peers.spire.parentId,
      OPENSANDBOX_API: `http://127.0.0.1:${sandboxes.port}`,
      POD_CAPACITY: String(CAPACITY),
      VM_CAPACITY: String(CAPACITY),
      // When Gitea is asked next is chance, and no part of what is compared.
      FETCH_MAX_RPS: "10",
    }),
  );
  const objects = openSandboxObjects(peers);
  const owned = stack.move();
  return {
    sides: {
      pod: {
        backend: "pod",
        source: "kubernetes",
        way: pods,
        async left() {
          const lists = await Promise.all([
            cluster.client.call("GET", `/api/v1/namespaces/${NAMESPACE.executors}/pods`),
            cluster.client.call("GET", "/apis/spire.spiffe.io/v1alpha1/clusterstaticentries"),
          ]);
          const names = lists.flatMap((list) => listAt(list, "items"))
            .map((one) => String(at(one, "metadata", "name")));
          // The controller's own entry is no executor's.
          return names.filter((name) => name.startsWith("ci-"));
        },
      },
      vm: {
        backend: "vm",
        source: "opensandbox",
        way: sandboxes,
        async left() {
          const names = (await objects.list()).map(({ name }) => `sandbox ${name}`);
          const entries = platform.entries();
          return entries === 0 ? names : [...names, `${entries} entries of guests`];
        },
      },
    },
    controller,
    platform,
    gitea,
    repository,
    report,
    signal,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
