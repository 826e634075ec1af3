import { createKubeAccess, type KubeAccess } from "./kube_access.ts";
import { run } from "./process.ts";

/**
 * Servers that {@link startPeers} can start. `kube` is kube-apiserver on etcd with RBAC; `fakenode`
 * stands in for scheduler and kubelet there (it runs no container); `scm` is spire-controller-manager
 * and needs `kube` and `spire`; `elector` is no server: client-go's contender, installed only.
 * `opensandbox` runs on the API server of `kube` when that is asked for, else on a stand-in of one.
 */
export type PeerName =
  | "gitea"
  | "nats"
  | "kube"
  | "fakenode"
  | "spire"
  | "scm"
  | "elector"
  | "opensandbox";

/** Real servers of one test run, on ports and in a folder of their own. */
export interface Peers extends AsyncDisposable {
  /** Folder of the installed programs, `gitea-runner` among them. */
  readonly bin: string;
  /** Folder of the scripts. */
  readonly scripts: string;
  /** Folder of this run: data, logs, sockets. Readable by every user. */
  readonly folder: string;
  /** Ports of this run that no peer uses; `port(0)` to `port(9)`. */
  port(index: number): number;
  readonly gitea: {
    /** Where Gitea listens. */
    readonly address: { readonly hostname: string; readonly port: number };
    /** Its ROOT_URL without the trailing slash; may lead through a proxy of the test. */
    readonly rootUrl: string;
    /** Access token of the administrator, every scope. */
    readonly token: string;
    readonly admin: { readonly name: string; readonly password: string };
  };
  readonly nats: { readonly url: string; readonly storeFolder: string };
  readonly spire: {
    readonly trustDomain: string;
    /** Workload API. */
    readonly agentSocket: string;
    /** Admin API of the server. */
    readonly serverSocket: string;
    /** SPIFFE ID of the only node: parent of every entry. */
    readonly parentId: string;
    /** Runs `spire-server ARGS...` on this server and resolves to what it printed. */
    server(args: readonly string[]): Promise<string>;
  };
  /** Empty strings in it unless `kube` was asked for. */
  readonly kube: KubeAccess;
  /** `className` that spire-controller-manager acts on. */
  readonly scm: { readonly className: string };
  /** The Lifecycle API, with a pool `ci-vm` of `OS_POOL_MAX` sandboxes, and its API key. */
  readonly opensandbox: { readonly url: string; readonly apiKey: string };
  /** Runs a script of the peers folder, e.g. `script("nats.sh", "kill9")`. */
  script(name: string, ...args: readonly string[]): Promise<string>;
}

/** Options of {@link startPeers}. */
export interface PeersOptions {
  readonly which: readonly PeerName[];
  /** Further variables of the scripts, e.g. `NATS_EXTRA`, `APISERVER_EXTRA`. */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * SPIRE attests Pods: the agent asks the kubelet's port of this run (`fakenode`, or a kubelet of the
   * test). By default when `fakenode` is there.
   */
  readonly attestPods?: boolean;
  /** Index for {@link Peers.port} of a proxy that Gitea's ROOT_URL names instead of Gitea itself. */
  readonly rootUrlPort?: number;
  /** How Gitea's ROOT_URL spells the loopback address; `127.1` by default, which browsers rewrite. */
  readonly rootUrlHost?: "127.0.0.1";
  /** Told of what takes long. */
  readonly say?: (line: string) => void;
  readonly signal?: AbortSignal;
}

/** How the scripts install, start and stop a peer. The order of the keys is that of the starts. */
const known: Readonly<
  Record<PeerName, {
    readonly programs: readonly string[];
    readonly install: readonly string[];
    /** Null: nothing to start. */
    readonly stop: "wipe" | "stop" | null;
  }>
> = {
  gitea: {
    programs: ["gitea", "gitea.static", "gitea-runner"],
    install: ["gitea", "runner"],
    stop: "wipe",
  },
  nats: { programs: ["nats-server"], install: ["nats"], stop: "wipe" },
  kube: {
    programs: ["etcd", "kube-apiserver", "kubectl"],
    install: ["etcd", "apiserver", "kubectl"],
    stop: "wipe",
  },
  fakenode: { programs: ["deno"], install: ["deno"], stop: "stop" },
  spire: { programs: ["spire-server", "spire-agent"], install: ["spire"], stop: "wipe" },
  scm: {
    programs: ["spire-controller-manager", "../build/scm/crds"],
    install: ["scm"],
    stop: "stop",
  },
  elector: { programs: ["elector"], install: ["elector"], stop: null },
  opensandbox: {
    programs: ["../build/opensandbox/bin/opensandbox-server"],
    install: ["opensandbox"],
    stop: "wipe",
  },
};

const peerNames = Object.keys(known) as PeerName[];

/** Offsets from the first of the 40 ports that the scripts count from. */
const offset = { kubelet: 10, nats: 20, opensandbox: 22, gitea: 24, free: 25, reservation: 39 };

/**
 * Starts real servers with the scripts of the peers folder (`PEERS_DIR`, by default `shared/peers`
 * beside the repository), installing what is missing. Several runs at a time do not meet: each has
 * its ports and its folder. Rejects with what to do when there is no peers folder, or when a server
 * does not come up; whatever was started is then stopped again.
 */
export async function startPeers(options: PeersOptions): Promise<Peers> {
  const scripts = await scriptsFolder();
  const { bin } = await install(scripts, options);
  const folder = await Deno.makeTempDir({ prefix: "gdr-" });
  // Executors of other users reach the Workload API socket and the programs in here.
  await Deno.chmod(folder, 0o755);
  const reservation = reservePorts();
  const which = peerNames.filter((name) => options.which.includes(name));
  const rootUrl = `http://${options.rootUrlHost ?? "127.1"}:${
    reservation.first +
    (options.rootUrlPort === undefined ? offset.gitea : offset.free + options.rootUrlPort)
  }`;
  const env = {
    PEERS_RUN: folder,
    PEERS_BIN: bin,
    PEERS_PORT: String(reservation.first),
    // Go programs leave out every proxy for `localhost` and addresses written as such: this spelling
    // is a name to them, and to git, curl, Python and Node it is the loopback address.
    GITEA_ROOT_URL: `${rootUrl}/`,
    ...options.attestPods ?? options.which.includes("fakenode") ? { SPIRE_K8S: "1" } : {},
    ...options.env,
  };
  // The script lays fakenode's sources there before each start: runs side by side must not meet.
  const envOf = (name: string) =>
    name === "fakenode.sh" ? { ...env, PEERS_BUILD: `${folder}/build` } : env;
  const script = async (name: string, ...args: readonly string[]) =>
    (await run("bash", [`${scripts}/${name}`, ...args], {
      env: envOf(name),
      ...options.signal === undefined ? {} : { signal: options.signal },
    })).stdout.trim();
  const stop = async () => {
    for (const peer of [...which].reverse()) {
      const { stop } = known[peer];
      if (stop === null) continue;
      // Not by `script`: an aborted run is stopped too.
      await run("bash", [`${scripts}/${peer}.sh`, stop], { env: envOf(`${peer}.sh`) })
        .catch(() => undefined);
    }
    await Deno.remove(folder, { recursive: true }).catch(() => undefined);
    reservation[Symbol.dispose]();
  };
  try {
    for (const peer of which) {
      if (known[peer].stop === null) continue;
      options.say?.(`starting ${peer}`);
      const mode = peer !== "opensandbox" ? [] : [which.includes("kube") ? "real" : "stub"];
      await script(`${peer}.sh`, "start", ...mode);
    }
    return {
      bin,
      scripts,
      folder,
      port: (index) => reservation.first + offset.free + index,
      gitea: {
        address: { hostname: "127.0.0.1", port: reservation.first + offset.gitea },
        rootUrl,
        token: options.which.includes("gitea") ? await script("gitea.sh", "token") : "",
        // What the script makes and documents; a throw-away server on loopback.
        admin: { name: "peeradmin", password: "peer-password-1" },
      },
      nats: {
        url: `nats://127.0.0.1:${reservation.first + offset.nats}`,
        storeFolder: `${folder}/nats-main/js`,
      },
      spire: {
        trustDomain: "example.org",
        agentSocket: `${folder}/spire/agent.sock`,
        serverSocket: `${folder}/spire/server.sock`,
        parentId: options.env?.["SPIRE_ALIAS"] ?? "spiffe://example.org/node/test",
        server: (args) => script("spire.sh", "server", ...args),
      },
      kube: createKubeAccess({
        present: which.includes("kube"),
        bin,
        folder: `${folder}/kube`,
        port: reservation.first,
        kubeletPort: reservation.first + offset.kubelet,
        ...options.signal === undefined ? {} : { signal: options.signal },
      }),
      scm: { className: options.env?.["SCM_CLASS"] ?? "test" },
      opensandbox: {
        url: `http://127.0.0.1:${reservation.first + offset.opensandbox}`,
        apiKey: "peers-key", // What the script sets; a throw-away server on loopback.
      },
      script,
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    const logs = await lastLogLines(`${folder}/logs`);
    await stop();
    throw new Error(`Start the peers: ${error instanceof Error ? error.message : error}\n${logs}`, {
      cause: error,
    });
  }
}

async function scriptsFolder(): Promise<string> {
  const given = Deno.env.get("PEERS_DIR");
  const folder = given ?? new URL("../../../shared/peers", import.meta.url).pathname;
  try {
    await Deno.stat(`${folder}/install.sh`);
  } catch {
    throw new Error(
      `Find the scripts that start real servers: no "install.sh" in "${folder}"; ` +
        `set PEERS_DIR to the folder that has it`,
    );
  }
  return folder;
}

async function install(scripts: string, options: PeersOptions): Promise<{ readonly bin: string }> {
  const bin =
    (await run("bash", ["-c", `. "$1/lib.sh" && printf %s "$PEERS_BIN"`, "bash", scripts]))
      .stdout;
  const missing: PeerName[] = [];
  for (const peer of options.which) {
    const there = await Promise.all(
      known[peer].programs.map((name) => Deno.stat(`${bin}/${name}`).then(() => true, () => false)),
    );
    if (there.includes(false)) missing.push(peer);
  }
  if (missing.length === 0) return { bin };
  options.say?.(`installing ${missing.join(", ")}: this takes several minutes, once`);
  await run("bash", [`${scripts}/install.sh`, ...missing.flatMap((peer) => known[peer].install)], {
    ...options.signal === undefined ? {} : { signal: options.signal },
  });
  return { bin };
}

/**
 * Forty consecutive ports below the range that the kernel gives out by itself. The last one is held
 * open, so that another run that draws the same ones looks on.
 */
function reservePorts(): { readonly first: number } & Disposable {
  for (let attempt = 0; attempt < 200; attempt++) {
    const first = 12_000 + 40 * Math.floor(Math.random() * 480);
    let held: Deno.TcpListener;
    try {
      held = Deno.listen({ hostname: "127.0.0.1", port: first + offset.reservation });
    } catch {
      continue;
    }
    if (portsFree(first)) return { first, [Symbol.dispose]: () => held.close() };
    held.close();
  }
  throw new Error(
    "Reserve ports for the peers: no 40 consecutive ones are free from 12000 to 31200",
  );
}

function portsFree(first: number): boolean {
  for (let port = first; port < first + offset.reservation; port++) {
    try {
      Deno.listen({ hostname: "127.0.0.1", port }).close();
    } catch {
      return false;
    }
  }
  return true;
}

async function lastLogLines(folder: string): Promise<string> {
  const parts: string[] = [];
  try {
    for await (const entry of Deno.readDir(folder)) {
      const text = await Deno.readTextFile(`${folder}/${entry.name}`);
      parts.push(`${entry.name}: ${text.trimEnd().split("\n").slice(-3).join("\n")}`);
    }
  } catch {
    return "No server has written a log";
  }
  return parts.join("\n");
}
