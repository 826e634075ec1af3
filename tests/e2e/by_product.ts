import { eventually } from "../support/eventually.ts";
import type { GiteaApi } from "../support/gitea_api.ts";
import type { Peers } from "../support/peers.ts";
import { run, type RunningProcess, startProcess } from "../support/process.ts";
import type { JobRunner } from "./scenarios.ts";

/** The product as a process of its own, configured by environment only. */
export interface Product extends JobRunner {
  /** `GET` of the JSON API, e.g. `get("/api/v1/status")`. Rejects unless it is 2xx. */
  get(path: string): Promise<unknown>;
  /** The text of a page. */
  page(path: string): Promise<string>;
  readonly url: string;
  readonly process: RunningProcess;
  /** Its STATE_DIR. */
  readonly stateFolder: string;
}

/** What is made once for every start of the product. */
export interface ProductBase {
  readonly peers: Peers;
  /** Address under which the controller itself, and only it, knows Gitea. */
  readonly giteaUrl: string;
  /** Folder of the registration's files. */
  readonly registration: string;
  readonly facadeSpiffeId: string;
  readonly capabilityKeyFile: string;
  readonly stateFolder: string;
  readonly logFolder: string;
  /** Stops every start of the product. */
  readonly signal: AbortSignal;
}

/** Index for `Peers.port` of what the product listens on. */
const ports = { facade: 1, dashboard: 2 };

const root = new URL("../../", import.meta.url).pathname;

/**
 * Registers the product with its own tool, gives the facade its identity at SPIRE, and makes its
 * folders.
 */
export async function prepareProduct(
  peers: Peers,
  api: GiteaApi,
  options: {
    readonly giteaUrl: string;
    readonly logFolder: string;
    readonly signal: AbortSignal;
  },
): Promise<ProductBase> {
  const folder = `${peers.folder}/product`;
  await Deno.mkdir(folder);
  await Deno.chmod(folder, 0o711);
  const registration = `${folder}/registration`;
  await run(Deno.execPath(), [
    "run",
    "-A",
    "tools/register.ts",
    "--url",
    options.giteaUrl,
    "--name",
    "dynamic",
    "--out",
    `${registration}/env`,
  ], { cwd: root, env: { REGISTRATION_TOKEN: await api.registrationToken() } });
  const facadeSpiffeId = `spiffe://${peers.spire.trustDomain}/ci-facade`;
  await peers.spire.server([
    "entry",
    "create",
    "-parentID",
    peers.spire.parentId,
    "-spiffeID",
    facadeSpiffeId,
    "-selector",
    `unix:uid:${Deno.uid()}`,
  ]);
  const capabilityKeyFile = `${folder}/capability-key`;
  await Deno.writeTextFile(capabilityKeyFile, crypto.randomUUID() + crypto.randomUUID(), {
    mode: 0o600,
  });
  return {
    peers,
    giteaUrl: options.giteaUrl,
    registration,
    facadeSpiffeId,
    capabilityKeyFile,
    stateFolder: `${folder}/state`,
    logFolder: options.logFolder,
    signal: options.signal,
  };
}

/**
 * Starts `main.ts` and resolves when it says that it is ready. Rejects with the end of its log when
 * it ends before that, or is not ready in a minute. No secret stands in its environment.
 */
export async function startProduct(
  base: ProductBase,
  options: {
    /** Of the log file. */
    readonly name: string;
    readonly podCapacity: number;
    readonly vmCapacity: number;
    readonly env?: Readonly<Record<string, string>>;
  },
): Promise<Product> {
  const { peers } = base;
  const facadePort = peers.port(ports.facade);
  const url = `http://127.0.0.1:${peers.port(ports.dashboard)}`;
  const process = await startProcess(Deno.execPath(), ["run", "-A", "main.ts"], {
    cwd: root,
    logFile: `${base.logFolder}/${options.name}.log`,
    clearEnv: true,
    signal: base.signal,
    env: {
      PATH: Deno.env.get("PATH") ?? "/usr/bin:/bin",
      HOME: Deno.env.get("HOME") ?? "/",
      ...cacheFolder(),
      PROFILE: "embedded",
      EXECUTORS: "process",
      ALLOW_UNISOLATED: "yes",
      LEADER_ELECTION: "none",
      STATE_DIR: base.stateFolder,
      CI_RUNNER_BIN: `${peers.bin}/gitea-runner`,
      GITEA_URL: base.giteaUrl,
      GITEA_RUNNER_UUID_FILE: `${base.registration}/GITEA_RUNNER_UUID`,
      GITEA_RUNNER_TOKEN_FILE: `${base.registration}/GITEA_RUNNER_TOKEN`,
      NATS_URL: peers.nats.url,
      TRUST_DOMAIN: peers.spire.trustDomain,
      SPIFFE_ENDPOINT_SOCKET: `unix://${peers.spire.agentSocket}`,
      SPIRE_SERVER_SOCKET: `unix://${peers.spire.serverSocket}`,
      SPIRE_PARENT_ID: peers.spire.parentId,
      CAPABILITY_KEY_FILE: base.capabilityKeyFile,
      RUNNER_FACADE_LISTEN: `127.0.0.1:${facadePort}`,
      RUNNER_FACADE_URL: `https://127.0.0.1:${facadePort}`,
      RUNNER_FACADE_SPIFFE_ID: base.facadeSpiffeId,
      ADMIN_LISTEN: url.slice("http://".length),
      POD_CAPACITY: String(options.podCapacity),
      VM_CAPACITY: String(options.vmCapacity),
      ...options.env,
    },
  });
  const page = async (path: string) => {
    const response = await fetch(url + path, { signal: AbortSignal.timeout(10_000) });
    const text = await response.text();
    if (!response.ok) throw new Error(`Get "${path}": ${response.status} ${text.slice(0, 200)}`);
    return text;
  };
  try {
    await Promise.race([
      eventually(async () => await page("/readyz") !== undefined, {
        what: `"${options.name}" to be ready`,
        timeoutMs: 60_000,
        everyMs: 100,
      }),
      process.exited.then((code) => {
        throw new Error(`Start "${options.name}": it ended with exit code ${code}`);
      }),
    ]);
  } catch (error) {
    await process.stop(2000);
    const tail = await process.tail(15);
    throw new Error(`${error instanceof Error ? error.message : error}\n${tail}`, { cause: error });
  }
  return {
    name: options.name,
    product: true,
    logFiles: [process.logFile],
    url,
    process,
    stateFolder: base.stateFolder,
    page,
    get: async (path) => JSON.parse(await page(path)),
    async [Symbol.asyncDispose]() {
      await process.stop();
    },
  };
}

/** Where Deno keeps its packages, when that is not below HOME. */
function cacheFolder(): Record<string, string> {
  const folder = Deno.env.get("DENO_DIR");
  return folder === undefined ? {} : { DENO_DIR: folder };
}
