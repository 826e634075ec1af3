import settings from "../deno.json" with { type: "json" };
import { register } from "../clients/gitea/register.ts";
import { Secret } from "../lib/secret.ts";
import type { GiteaApi } from "../tests/support/gitea_api.ts";
import type { Peers } from "../tests/support/peers.ts";
import { eventually } from "../tests/support/eventually.ts";
import { type RunningProcess, startProcess } from "../tests/support/process.ts";

/** The product, as its users start it, at a real Gitea. */
export interface ControllerProcess extends AsyncDisposable {
  readonly process: RunningProcess;
  /** Dashboard and API. */
  readonly origin: string;
  /** Resident memory of the controller alone, MiB. */
  residentMiB(): Promise<number>;
  /** The work's outcome; rejects at once, with the log's end, should the controller end before. */
  watch<T>(work: Promise<T>): Promise<T>;
}

/**
 * Starts `main.ts` in the embedded profile with real Gitea, its own nats-server child and process
 * executors; resolves when it is ready. `port` is the dashboard's. Ends when disposed.
 */
export async function startController(
  deps: { readonly peers: Peers; readonly gitea: GiteaApi },
  options: {
    readonly name: string;
    readonly port: number;
    readonly capacity: number;
    readonly env?: Readonly<Record<string, string>>;
  },
): Promise<ControllerProcess> {
  const { peers } = deps;
  const signal = AbortSignal.timeout(30_000);
  const { uuid, token } = await register({
    url: peers.gitea.rootUrl,
    registrationToken: new Secret(await deps.gitea.registrationToken()),
    name: options.name,
    labels: ["self-hosted", "pod"],
  }, { signal });
  const origin = `http://127.0.0.1:${options.port}`;
  const root = decodeURIComponent(new URL("..", import.meta.url).pathname);
  // As `deno task start` does, flags included.
  const [, ...command] = settings.tasks.start.command.split(" ");
  const process = await startProcess(Deno.execPath(), command, {
    cwd: root,
    logFile: `${peers.folder}/${options.name}.log`,
    env: {
      PROFILE: "embedded",
      PATH: `${peers.bin}:${Deno.env.get("PATH") ?? ""}`,
      GITEA_URL: peers.gitea.rootUrl,
      GITEA_RUNNER_UUID: uuid,
      GITEA_RUNNER_TOKEN: token.reveal(),
      STATE_DIR: `${peers.folder}/${options.name}`,
      ADMIN_LISTEN: `127.0.0.1:${options.port}`,
      POD_CAPACITY: String(options.capacity),
      COMPONENTS: "scheduler,pod-worker",
      ...options.env,
    },
  });
  const crash = process.exited.then(async (code) => {
    throw new Error(`Run the controller: it ended with ${code}\n${await process.tail(15)}`);
  });
  // A wanted end is nobody's error.
  crash.catch(() => undefined);
  const controller: ControllerProcess = {
    process,
    origin,
    async residentMiB() {
      const status = await Deno.readTextFile(`/proc/${process.pid}/status`);
      return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? NaN) / 1024;
    },
    watch: (work) => Promise.race([work, crash]),
    async [Symbol.asyncDispose]() {
      await process.stop(20_000);
    },
  };
  try {
    const ready = async () => {
      const response = await fetch(`${origin}/readyz`);
      await response.body?.cancel();
      return response.ok;
    };
    const isReady = () => ready().catch(() => false);
    const up = eventually(isReady, { what: "the controller", timeoutMs: 60_000 });
    await controller.watch(up);
  } catch (error) {
    await controller[Symbol.asyncDispose]();
    throw error;
  }
  return controller;
}
