import { GATE_FLAGS } from "../../backends/gate_flags.ts";
import { bundleProgram } from "../../clients/esbuild/program.ts";
import { instanceOf } from "../../controller/model/ids.ts";
import { systemClock } from "../../lib/clock.ts";
import { faultsOf } from "../chaos/faults.ts";
import { openForge } from "../chaos/forge.ts";
import { natsPort, openNatsView } from "../chaos/nats_view.ts";
import type { Outside } from "../chaos/outside.ts";
import { createSupervisor } from "../chaos/supervisor.ts";
import { startWatch } from "../chaos/watch.ts";
import { getJson, type World } from "../chaos/world.ts";
import { createControllerPlace, startController } from "../support/controller_process.ts";
import { type ChaosExecutors, createChaosExecutors } from "./chaos_executors.ts";
import { POD_FAULTS } from "./chaos_faults.ts";
import { EXECUTOR_IMAGE, PORT } from "./cluster.ts";
import { type FaultProxy, startFaultProxy } from "./fault_proxy.ts";
import type { Stage } from "./stage.ts";

/** What a fault of this backend can take hold of. */
export interface ChaosGround {
  readonly stage: Stage;
  /** Between the controller and the API server. */
  readonly proxy: FaultProxy;
  readonly executors: ChaosExecutors;
}

const CAPACITY = 10;
const LOST = 3;
const HEAP = "--v8-flags=--max-semi-space-size=2,--optimize-for-size";
const IMAGE = "chaos-gate:1";
const GATE_FOLDER = "/opt/chaos-gate";

/**
 * Opens a world whose executors are Pods: `main.ts` with the rights of the controller's service account,
 * a Lease, the real SPIRE and its controller manager, and a nats-server child of its own. Pods have the
 * product's spec with the light gate as their command, by the operator's template.
 */
export async function openPodWorld(stage: Stage): Promise<World> {
  const { cluster, installation, report } = stage;
  const { peers } = cluster;
  await using stack = new AsyncDisposableStack();
  const forge = stack.use(await openForge());
  const outside = stack.use(serveOutside());
  const place = stack.use(await createControllerPlace());
  const proxy = stack.use(await startFaultProxy(peers.kube));
  const files = await Deno.makeTempDir({ dir: peers.folder, prefix: "chaos-" });
  await layGate(stage, `${files}/gate`);
  const facade = `127.0.0.1:${peers.port(PORT.chaos)}`;
  const facadeSpiffeId = `spiffe://${peers.spire.trustDomain}/gitea-dynamic-runner/chaos`;
  await cluster.peers.kube.kubectl(["apply"], {
    stdin: JSON.stringify(facadeEntry(facadeSpiffeId)),
  });
  const templateFile = `${files}/template.json`;
  await Deno.writeTextFile(templateFile, JSON.stringify(TEMPLATE));
  const kubeconfig = await peers.kube.kubeconfig(`${files}/kubeconfig`, {
    namespace: installation.controller,
    serviceAccount: "controller",
    server: proxy.url,
  });
  const env = {
    PROFILE: "embedded",
    EXECUTORS: "real",
    COMPONENTS: "scheduler,pod-worker",
    LEADER_ELECTION: "kubernetes",
    HOSTNAME: "chaos",
    KUBECONFIG: kubeconfig,
    POD_NAMESPACE: installation.executors,
    POD_EXECUTOR_IMAGE: IMAGE,
    POD_TEMPLATE_FILE: templateFile,
    POD_CAPACITY: String(CAPACITY),
    VM_CAPACITY: "0",
    SPIRE_AGENT_ID: peers.spire.parentId,
    SPIRE_CLASS: peers.scm.className,
    TRUST_DOMAIN: peers.spire.trustDomain,
    SPIFFE_ENDPOINT_SOCKET: `unix://${cluster.workloadApi}/spire-agent.sock`,
    RUNNER_FACADE_LISTEN: facade,
    RUNNER_FACADE_URL: `https://${facade}`,
    RUNNER_FACADE_SPIFFE_ID: facadeSpiffeId,
    GITEA_URL: forge.proxy.url,
    GITEA_RUNNER_UUID: forge.uuid,
    GITEA_RUNNER_TOKEN: forge.token,
    LOG_FORMAT: "json",
  };

  const controller = stack.use(createSupervisor({
    clock: systemClock,
    say: report.say,
    start: () =>
      startController({
        stateDir: place.stateDir,
        command: ["run", "-A", HEAP, "main.ts"],
        env,
      }),
    isReady: async (url) => (await getJson<{ ready: boolean }>(`${url}/api/v1/status`)).ready,
  }));
  try {
    await controller.replace();
  } catch (error) {
    const tail = (await controller.log()).trimEnd().split("\n").slice(-15).join("\n");
    throw new Error(`${error instanceof Error ? error.message : error}\n${tail}`, { cause: error });
  }
  const get = <T>(path: string) => getJson<T>(`${controller.url}${path}`);
  const instance = await instanceOf(forge.uuid, installation.executors);
  const executors = createChaosExecutors(stage, instance);
  const ground: ChaosGround = { stage, proxy, executors };
  const pid = () => controller.pid;
  const watch = stack.use(startWatch({ get, pid }));
  const nats = stack.use(openNatsView(place.stateDir));
  if (natsPort(place.stateDir) === null) throw new Error("Open the world: nats-server has no port");
  const owned = stack.move();
  return {
    lane: "pods",
    faults: [
      ...faultsOf("pods"),
      ...POD_FAULTS.map(({ run, ...fault }) => ({
        ...fault,
        lanes: ["pods"] as const,
        run: (_world: World, dose: Parameters<typeof run>[1]) => run(ground, dose),
      })),
    ],
    forge,
    outside,
    place,
    light: null,
    pods: executors,
    watch,
    nats,
    pid,
    get,
    replaceController: controller.replace,
    // One that has lost the lead ends by design, whatever kept it from renewing its Lease.
    takeExits: () => controller.takeExits().filter(({ code }) => code !== LOST),
    end: controller.end,
    log: controller.log,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Pods share no files with the oracle: jobs write over HTTP. */
function serveOutside(): Outside & AsyncDisposable {
  const written = new Map<string, string[]>();
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const lines = written.get(new URL(request.url).pathname);
    if (lines === undefined) return new Response(null, { status: 404 });
    lines.push(await request.text());
    return new Response(null, { status: 204 });
  });
  return {
    open() {
      const path = `/job-${written.size + 1}`;
      const lines: string[] = [];
      written.set(path, lines);
      return Promise.resolve({
        file: `http://127.0.0.1:${server.addr.port}${path}`,
        lines: () => Promise.resolve([...lines]),
      });
    },
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

/** The executor's image with the light gate beside the real one. */
async function layGate({ cluster }: Stage, folder: string): Promise<void> {
  const image = cluster.images.get(EXECUTOR_IMAGE);
  if (image === undefined) throw new Error(`Lay the light gate: there is no "${EXECUTOR_IMAGE}"`);
  await Deno.mkdir(folder);
  const program = await bundleProgram(new URL("./chaos_gate.ts", import.meta.url));
  await Deno.writeTextFile(`${folder}/gate.mjs`, program);
  cluster.images.set(IMAGE, { ...image, parts: [{ source: folder, target: GATE_FOLDER }] });
}

const TEMPLATE = {
  spec: {
    terminationGracePeriodSeconds: 30,
    containers: [{
      name: "executor",
      command: [
        "/usr/local/bin/deno",
        "run",
        ...GATE_FLAGS,
        "--allow-all",
        `${GATE_FOLDER}/gate.mjs`,
      ],
    }],
  },
};

/** The controller is a process of root outside of every Pod. */
function facadeEntry(spiffeID: string): unknown {
  return {
    apiVersion: "spire.spiffe.io/v1alpha1",
    kind: "ClusterStaticEntry",
    metadata: { name: "chaos-facade" },
    spec: {
      className: "spire-mgmt-spire",
      spiffeID,
      parentID: "spiffe://example.org/node",
      selectors: [`unix:uid:${Deno.uid()}`],
    },
  };
}
