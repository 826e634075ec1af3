import { findRunner } from "../../embedded/executor_image.ts";
import { systemClock } from "../../lib/clock.ts";
import {
  type ControllerPlace,
  createControllerPlace,
  startController,
} from "../support/controller_process.ts";
import { type CutProxy, startCutProxy } from "./cut_proxy.ts";
import { type ExecutorHost, startExecutorHost } from "./executor_host.ts";
import { type Done, type Fault, faultsOf } from "./faults.ts";
import { type ChaosForge, openForge } from "./forge.ts";
import { natsPort, type NatsView, openNatsView } from "./nats_view.ts";
import { openOutside, type Outside } from "./outside.ts";
import type { Random } from "./random.ts";
import type { Lane } from "./schedule.ts";
import { createSupervisor, type Exit } from "./supervisor.ts";
import { startWatch, type Watch } from "./watch.ts";

/** Lanes that need nothing but this machine. */
export type LocalLane = Exclude<Lane, "pods">;

/** What only a world of light executors has. */
export interface LightParts {
  readonly host: ExecutorHost;
  readonly natsProxy: CutProxy;
}

/** What only a world has whose executors are Pods. */
export interface PodParts {
  /** How many executors were handed the task of that assignment, ever. */
  handed(assignment: string): Promise<number>;
  /** Kills some of those that run. */
  kill(
    who: "gate" | "runner",
    options: { readonly count: number; readonly random: Random },
  ): Promise<Done>;
  /** Pods and identity entries that are there; empty without any. */
  left(): Promise<string>;
  /** What is wrong with what was made on the cluster since the last call. */
  complaints(): Promise<readonly string[]>;
}

/** One controller with its own servers, a forge, and places to interfere. */
export interface World extends AsyncDisposable {
  readonly lane: Lane;
  /** What can befall it. */
  readonly faults: readonly Fault[];
  readonly forge: ChaosForge;
  readonly outside: Outside;
  readonly place: ControllerPlace;
  /** Null in the lanes without an executor host. */
  readonly light: LightParts | null;
  /** Null in the lanes without a cluster. */
  readonly pods: PodParts | null;
  readonly watch: Watch;
  readonly nats: NatsView;
  /** Of the controller that runs now; null while there is none. */
  pid(): number | null;
  /** JSON of the controller that runs now. */
  get<T>(path: string): Promise<T>;
  /** SIGKILL to the controller alone, and another one in its place that has recovered. */
  replaceController(): Promise<void>;
  /** Controllers that ended by themselves since the last call; each was started again. */
  takeExits(): readonly Exit[];
  /** Ends the controller by SIGTERM; resolves to its exit code. */
  end(): Promise<number>;
  /** Everything that its controllers have printed. */
  log(): Promise<string>;
}

const CAPACITY: Readonly<Record<LocalLane, number>> = { steady: 12, killed: 12, real: 4 };
/** As `deno task start` does. */
const HEAP = "--v8-flags=--max-semi-space-size=2,--optimize-for-size";
const PRODUCT = "tests/chaos/product.ts";

/** Opens a {@link World} whose controller has recovered; `say` prints a line. */
export async function openWorld(lane: LocalLane, say: (line: string) => void): Promise<World> {
  await using stack = new AsyncDisposableStack();
  const runner = await findRunner(Deno.env.get("PATH") ?? "");
  const folder = await Deno.makeTempDir({ prefix: "gdr-chaos-" });
  stack.defer(() => Deno.remove(folder, { recursive: true }));
  await Deno.chmod(folder, 0o711);
  const forge = stack.use(await openForge());
  const outside = await openOutside(folder);
  const place = stack.use(await createControllerPlace());
  const light = lane === "real" ? null : {
    host: stack.use(startExecutorHost()),
    natsProxy: stack.use(startCutProxy(() => natsPort(place.stateDir))),
  };

  const controller = stack.use(createSupervisor({
    clock: systemClock,
    say,
    start: () =>
      startController({
        stateDir: place.stateDir,
        command: ["run", "-A", HEAP].concat(
          light === null ? ["main.ts"] : [
            PRODUCT,
            `--executors=${light.host.url}`,
            `--nats=nats://127.0.0.1:${light.natsProxy.port}`,
          ],
        ),
        env: {
          PROFILE: "embedded",
          GITEA_URL: forge.proxy.url,
          GITEA_RUNNER_UUID: forge.uuid,
          GITEA_RUNNER_TOKEN: forge.token,
          POD_CAPACITY: String(CAPACITY[lane]),
          VM_CAPACITY: "0",
          LOG_FORMAT: "json",
          ...lane === "real" && runner !== null ? { CI_RUNNER_BIN: runner } : {},
        },
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
  const pid = () => controller.pid;
  const watch = stack.use(startWatch({ get, pid }));
  const nats = stack.use(openNatsView(place.stateDir));
  const owned = stack.move();
  return {
    lane,
    faults: faultsOf(lane),
    forge,
    outside,
    place,
    light,
    pods: null,
    watch,
    nats,
    pid,
    get,
    replaceController: controller.replace,
    takeExits: controller.takeExits,
    end: controller.end,
    log: controller.log,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** JSON from a controller's pages. Rejects when it does not answer within 5 s, or with an error. */
export async function getJson<T>(url: string): Promise<T> {
  const response = await fetch(url, { signal: AbortSignal.timeout(5_000) });
  const body = await response.text();
  if (!response.ok) throw new Error(`Get "${url}": ${response.status} ${body.slice(0, 200)}`);
  return JSON.parse(body) as T;
}
