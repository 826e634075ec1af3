import { HIDDEN_VARIABLES } from "./launch.ts";

/** What the runner's files and environment are made from. */
export interface RunnerSetup {
  /** The container's own environment. */
  readonly env: Readonly<Record<string, string>>;
  /** The gate's work folder. */
  readonly work: string;
  /** The gate's proxy. */
  readonly proxyUrl: string;
  /** True for an https Gitea. */
  readonly secure: boolean;
  /** Folder with the gate's certificate, where the system's certificate folder has no link to it. */
  readonly certificateDir: string | undefined;
  /** How long the runner lets its job go on after SIGTERM, ms. */
  readonly shutdownMs: number;
}

const PROXY_VARIABLES = [
  "HTTP_PROXY",
  "http_proxy",
  "HTTPS_PROXY",
  "https_proxy",
  "NO_PROXY",
  "no_proxy",
  "ALL_PROXY",
  "all_proxy",
] as const;
const SYSTEM_CERTIFICATES = "/etc/ssl/certs";

/** Host mode for whatever `runs-on` says: one label is enough, these are all that we declare. */
const LABELS = ["self-hosted:host", "pod:host", "vm:host", "vm-dev:host"];

/**
 * The registration file, given to the runner by stdin and never written. Its address is Gitea's own
 * URL, because the runner derives `GITHUB_SERVER_URL` and the like from it; its token is the nonce.
 */
export function runnerFile(
  file: { readonly uuid: string; readonly nonce: string; readonly address: string },
): string {
  const { uuid, nonce: token, address } = file;
  return JSON.stringify({
    id: 1,
    uuid,
    name: uuid,
    token,
    address,
    labels: LABELS,
    ephemeral: false,
  }) + "\n";
}

/**
 * The address for the registration file. Go's HTTP client uses no proxy for `localhost` and the
 * addresses 127.0.0.0/8: a Gitea on this machine is spelled so that it does not notice. The other
 * spellings of the same address (`127.1`, `127.66051`) are numbers to everybody else.
 */
export function runnerAddress(giteaUrl: string): string {
  return giteaUrl.replace(
    /^(https?:\/\/)(?:localhost|127\.(\d{1,3})\.(\d{1,3})\.(\d{1,3}))(?=[:/]|$)/i,
    (_, scheme: string, a = "0", b = "0", c = "1") =>
      `${scheme}127.${(Number(a) * 256 + Number(b)) * 256 + Number(c)}`,
  );
}

/**
 * The environment of the runner process: the container's own without what no step may see, and with
 * the one proxy variable that sends the runner's calls through the gate. Steps inherit all of it.
 */
export function runnerEnvironment(setup: RunnerSetup): Record<string, string> {
  const hidden = new Set<string>([...HIDDEN_VARIABLES, ...PROXY_VARIABLES]);
  const env = Object.fromEntries(Object.entries(setup.env).filter(([name]) => !hidden.has(name)));
  env[proxyVariable(setup)] = setup.proxyUrl;
  env["HOME"] ??= `${setup.work}/home`;
  if (setup.certificateDir !== undefined) {
    env["SSL_CERT_DIR"] = `${env["SSL_CERT_DIR"] || SYSTEM_CERTIFICATES}:${setup.certificateDir}`;
  }
  return env;
}

/**
 * The runner's configuration (JSON is YAML). `runner.envs` gives the steps back what the container
 * had; a variable cannot be unset, only emptied. Keys are those of runner 1.0.8.
 */
export function runnerConfig(setup: RunnerSetup): string {
  const reset = proxyVariable(setup);
  const envs: Record<string, string> = { [reset]: setup.env[reset] ?? "" };
  for (const name of PROXY_VARIABLES) {
    const value = setup.env[name];
    if (value !== undefined) envs[name] = value;
  }
  if (setup.certificateDir !== undefined) {
    envs["SSL_CERT_DIR"] = setup.env["SSL_CERT_DIR"] || SYSTEM_CERTIFICATES;
  }
  return JSON.stringify({
    log: { level: "info" },
    runner: {
      file: "/dev/stdin",
      capacity: 1,
      insecure: false,
      envs,
      env_file: "",
      timeout: "24h",
      shutdown_timeout: `${Math.ceil(setup.shutdownMs / 1000)}s`,
      // The gate holds each fetch for up to 4 s, so that short intervals do not spin.
      fetch_timeout: "10s",
      fetch_interval: "100ms",
      fetch_interval_max: "500ms",
      // Answered on loopback; the gate passes on what is new.
      state_report_interval: "2s",
      report_close_timeout: "10s",
    },
    cache: { enabled: false },
    metrics: { enabled: false },
    host: { workdir_parent: `${setup.work}/act` },
    container: { workdir_parent: `${setup.work.replace(/^\/+/, "")}/work` },
  });
}

/** Upper case only: curl and git ignore it, Go does not. */
function proxyVariable(setup: RunnerSetup): "HTTP_PROXY" | "HTTPS_PROXY" {
  return setup.secure ? "HTTPS_PROXY" : "HTTP_PROXY";
}

/**
 * The proxy that the container's own environment names for a `host:port`, by the rules of curl for
 * `NO_PROXY` (names match as suffixes; `*` is everything); undefined for none.
 */
export function upstreamProxy(
  env: Readonly<Record<string, string>>,
  authority: string,
): URL | undefined {
  const proxy = URL.parse(env["HTTPS_PROXY"] || env["https_proxy"] || env["ALL_PROXY"] || "");
  if (proxy === null || proxy.protocol !== "http:") return undefined;
  const host = authority.replace(/:\d+$/, "").toLowerCase();
  const excepted = (env["NO_PROXY"] || env["no_proxy"] || "").toLowerCase().split(",")
    .map((name) => name.trim().replace(/^\*?\./, "")).filter((name) => name !== "");
  const direct = excepted.some((name) => {
    return name === "*" || name === host || name === authority || host.endsWith(`.${name}`);
  });
  return direct ? undefined : proxy;
}
