import { prepareProduct, type ProductBase } from "../e2e/by_product.ts";
import type { Report } from "../e2e/report.ts";
import { type Image, layExecutorImage } from "../support/container_image.ts";
import { createGiteaApi, type GiteaApi } from "../support/gitea_api.ts";
import { type Peers, startPeers } from "../support/peers.ts";
import { WORKFLOWS } from "./workflows.ts";

/** What the parts of this suite share. */
export interface Stage extends AsyncDisposable {
  readonly peers: Peers;
  readonly gitea: GiteaApi;
  /** `owner/name` of the repository with the workflows of `workflows.ts`. */
  readonly repository: string;
  readonly base: ProductBase;
  /** The executor's image, as a pool's sandboxes have it. */
  readonly image: Image;
  /** Folder with the Workload API's socket, on this machine and in a guest. */
  readonly workloadApi: string;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/** More than any part makes at a time: the pool is to be full in no part. */
const POOL = 300;

/**
 * Starts real Gitea, NATS, SPIRE and opensandbox-server on its stand-in of an API server, registers the
 * controller and lays the executor's image out. Everything is stopped when it is disposed of.
 */
export async function startStage(
  { report, signal }: { readonly report: Report; readonly signal: AbortSignal },
): Promise<Stage> {
  await using stack = new AsyncDisposableStack();
  const peers = stack.use(
    await startPeers({
      which: ["gitea", "nats", "spire", "opensandbox"],
      env: {
        GITEA_EXTRA: "DEFAULT_ACTIONS_URL = self",
        OS_POOL_MAX: String(POOL),
        OS_POOL_WAIT: "3",
        OS_CREATE_WAIT: "20",
      },
      say: report.say,
      signal,
    }),
  );
  const { rootUrl: url, admin, token } = peers.gitea;
  const gitea = createGiteaApi({ url, user: admin.name, password: admin.password, token, signal });
  await gitea.createRepository("vm", { private: false });
  const repository = `${gitea.user}/vm`;
  await gitea.commit(repository, WORKFLOWS);
  const base = await prepareProduct(peers, gitea, {
    giteaUrl: url,
    logFolder: `${peers.folder}/logs`,
    signal,
  });
  // Layers of an overlay may not lie in one another, and this machine's root is the lowest.
  const layer = await Deno.makeTempDir({ dir: "/dev/shm", prefix: "gdr-vm-image-" });
  stack.defer(() => Deno.remove(layer, { recursive: true }));
  await Deno.chmod(layer, 0o755);
  const image = await layExecutorImage(peers.bin, layer);
  const workloadApi = `${peers.folder}/workload-api`;
  await Deno.mkdir(workloadApi);
  await Deno.chmod(workloadApi, 0o755);
  // A guest sees the agent's socket alone, not the server's beside it.
  await Deno.link(peers.spire.agentSocket, `${workloadApi}/spire-agent.sock`);
  const owned = stack.move();
  return {
    peers,
    gitea,
    repository,
    base,
    image,
    workloadApi,
    report,
    signal,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
