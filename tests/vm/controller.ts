import { eventually } from "../support/eventually.ts";
import { type RunningProcess, startProcess } from "../support/process.ts";
import { VM_PREFIX } from "../support/vm_backend_setup.ts";
import type { Stage } from "./stage.ts";

/** `main.ts` in the production profile, with microVMs as its only executors. */
export interface VmController extends AsyncDisposable {
  readonly process: RunningProcess;
  /** JSON of its API. */
  get(path: string): Promise<unknown>;
  /** What it has logged since this start. */
  log(): Promise<Readonly<Record<string, unknown>>[]>;
}

const ROOT = new URL("../../", import.meta.url).pathname;
/** Index for `Peers.port` of what it listens on. */
const PORT = { facade: 1, dashboard: 2, health: 3 };
/** Starting takes that long on a busy machine; nothing is promised of it. */
const READY_MS = 120_000;
let starts = 0;

/** Resolves when it says that it is ready; rejects with the end of its log when it does not come to that. */
export async function startVmController(
  { peers, base, workloadApi, signal }: Stage,
  env: Readonly<Record<string, string>> = {},
): Promise<VmController> {
  const at = (port: number) => `127.0.0.1:${peers.port(port)}`;
  const denoDir = Deno.env.get("DENO_DIR");
  const process = await startProcess(Deno.execPath(), ["run", "-A", "main.ts"], {
    cwd: ROOT,
    logFile: `${base.logFolder}/controller-${++starts}.log`,
    clearEnv: true,
    signal,
    env: {
      PATH: "/usr/bin:/bin",
      HOME: Deno.env.get("HOME") ?? "/",
      ...denoDir === undefined ? {} : { DENO_DIR: denoDir },
      COMPONENTS: "scheduler,vm-worker",
      EXECUTORS: "real",
      LEADER_ELECTION: "none",
      METADATA_PREFIX: VM_PREFIX,
      STATE_DIR: base.stateFolder,
      GITEA_URL: base.giteaUrl,
      GITEA_RUNNER_UUID_FILE: `${base.registration}/GITEA_RUNNER_UUID`,
      GITEA_RUNNER_TOKEN_FILE: `${base.registration}/GITEA_RUNNER_TOKEN`,
      NATS_URL: peers.nats.url,
      TRUST_DOMAIN: peers.spire.trustDomain,
      SPIFFE_ENDPOINT_SOCKET: `unix://${workloadApi}/spire-agent.sock`,
      CAPABILITY_KEY_FILE: base.capabilityKeyFile,
      RUNNER_FACADE_LISTEN: at(PORT.facade),
      RUNNER_FACADE_URL: `https://${at(PORT.facade)}`,
      RUNNER_FACADE_SPIFFE_ID: base.facadeSpiffeId,
      ADMIN_LISTEN: at(PORT.dashboard),
      HEALTH_LISTEN: at(PORT.health),
      OPENSANDBOX_API: peers.opensandbox.url,
      OPENSANDBOX_API_KEY: peers.opensandbox.apiKey,
      VM_CAPACITY: "1",
      ...env,
    },
  });
  const asked = async (url: string) => {
    const response = await fetch(url, { signal: AbortSignal.timeout(10_000) });
    const text = await response.text();
    if (!response.ok) throw new Error(`Get "${url}": ${response.status} ${text.slice(0, 200)}`);
    return text;
  };
  const started = { ended: null as number | null };
  process.exited.then((code) => started.ended = code);
  try {
    await eventually(async () => {
      if (started.ended !== null) return true;
      return await asked(`http://${at(PORT.health)}/readyz`) !== "";
    }, { what: "the controller to be ready", timeoutMs: READY_MS, everyMs: 100 });
    if (started.ended !== null) throw new Error(`It ended with exit code ${started.ended}`);
  } catch (error) {
    await process.stop(2_000);
    throw new Error(`Start the controller: ${error}\n${await process.tail(15)}`, { cause: error });
  }
  return {
    process,
    get: async (path) => JSON.parse(await asked(`http://${at(PORT.dashboard)}${path}`)),
    async log() {
      const lines = (await Deno.readTextFile(process.logFile)).split("\n");
      return lines.filter((line) => line.startsWith("{") && line.endsWith("}"))
        .map((line) => JSON.parse(line));
    },
    async [Symbol.asyncDispose]() {
      await process.stop();
    },
  };
}
