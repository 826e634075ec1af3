import { join } from "node:path";
import { findNatsServer } from "../../embedded/nats_binary.ts";
import { silentLogger } from "../../lib/logger.ts";
import { containerServer } from "./nats_container.ts";
import { eventually } from "./eventually.ts";

/** Settings of a test's server. */
export interface NatsTestOptions {
  /** `always` = synced to disk with every message; default: as nats-server comes. */
  readonly jetstreamSync?: "always";
  /** Further lines of the configuration's top level: users, TLS. Makes it a binary. */
  readonly config?: string;
}

/** Environment of a controller that is to use this server. */
export function natsEnvironment(nats: TestNats): Record<string, string> {
  return {
    NATS_URL: nats.url,
    ...nats.user === null ? {} : { NATS_USER: nats.user },
    ...nats.password === null ? {} : { NATS_PASSWORD: nats.password },
  };
}

/** A real nats-server with JetStream for one test. Disposing it stops it and removes its files. */
export interface TestNats extends AsyncDisposable {
  readonly url: string;
  readonly kind: "container" | "binary";
  readonly user: string | null;
  readonly password: string | null;
  /** Where JetStream's files are; null when they are inside a container. */
  readonly storeDir: string | null;
  /** A folder with the store's files as they are now: {@link storeDir} itself, or a copy. */
  dumpStore(): Promise<string>;
  /** Ends it as a crash would. */
  kill9(): Promise<void>;
  /** Ends it in order. */
  stop(): Promise<void>;
  /** Starts it again, on the same port and the same files. */
  restart(): Promise<void>;
}

let told = false;
let container: boolean | undefined;

/**
 * Starts a server: a container where an engine answers and the image can be had, else a binary
 * (PATH, then pip's wheel, then Go). Says once on stderr which one it is, and why.
 */
export async function startNats(options: NatsTestOptions = {}): Promise<TestNats> {
  if (options.config === undefined && container !== false) {
    const made = await containerServer(options);
    if (made.kind === "started") {
      container = true;
      tell("NATS for tests: a container");
      return made.server;
    }
    container = false;
    tell(`NATS for tests: a binary (${made.why})`);
  }
  return await binaryServer(options);
}

/** Path of a nats-server program: on PATH, else fetched once and kept in the user's cache. */
export async function natsProgram(): Promise<string> {
  const cacheDir = join(Deno.env.get("XDG_CACHE_HOME") ?? join(homeDir(), ".cache"), "gdr-tests");
  const { path } = await findNatsServer({
    cacheDir,
    env: Deno.env.toObject(),
    logger: silentLogger,
    signal: AbortSignal.timeout(300_000),
  });
  return path;
}

async function binaryServer(options: NatsTestOptions): Promise<TestNats> {
  const program = await natsProgram();
  const dir = await Deno.makeTempDir({ prefix: "gdr-nats-" });
  const storeDir = join(dir, "js");
  const ports = join(dir, "ports");
  await Deno.mkdir(ports);
  const configure = (port: number) =>
    Deno.writeTextFile(
      join(dir, "nats.conf"),
      [
        `listen: "127.0.0.1:${port}"`,
        `ports_file_dir: ${JSON.stringify(ports)}`,
        `jetstream { store_dir: ${JSON.stringify(storeDir)}`,
        options.jetstreamSync === undefined ? "" : `sync_interval: ${options.jetstreamSync}`,
        "}",
        options.config ?? "",
      ].join("\n"),
    );
  let child: Deno.ChildProcess | undefined;

  const start = async () => {
    const started = new Deno.Command(program, {
      args: ["-c", join(dir, "nats.conf"), "-l", join(dir, "log")],
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).spawn();
    child = started;
    let ended = false;
    started.status.then(() => ended = true);
    const file = join(ports, `nats-server_${started.pid}.ports`);
    return await eventually(async () => {
      if (ended) throw new Error(`nats-server ended: ${await Deno.readTextFile(join(dir, "log"))}`);
      const text = await Deno.readTextFile(file).catch(() => undefined);
      if (text === undefined || text === "") return undefined;
      const url: string | undefined = JSON.parse(text).nats?.[0];
      return url;
    }, { what: "nats-server to listen" });
  };
  const end = async (signal: Deno.Signal) => {
    const running = child;
    child = undefined;
    if (running === undefined) return;
    running.kill(signal);
    await running.status;
  };

  await configure(-1);
  const url = await start();
  const port = Number(new URL(url).port);
  await configure(port);
  return {
    url: `nats://127.0.0.1:${port}`,
    kind: "binary",
    user: null,
    password: null,
    storeDir,
    dumpStore: () => Promise.resolve(storeDir),
    kill9: () => end("SIGKILL"),
    stop: () => end("SIGTERM"),
    async restart() {
      await end("SIGTERM");
      await start();
    },
    async [Symbol.asyncDispose]() {
      await end("SIGKILL");
      await Deno.remove(dir, { recursive: true });
    },
  };
}

function tell(text: string): void {
  if (told) return;
  told = true;
  Deno.stderr.writeSync(new TextEncoder().encode(`${text}\n`));
}

function homeDir(): string {
  return Deno.env.get("HOME") ?? Deno.makeTempDirSync({ prefix: "gdr-home-" });
}
