import { join } from "node:path";
import { runtimePath } from "../../wiring/runtime_directory.ts";
import { eventually } from "./eventually.ts";
import { natsProgram } from "./nats.ts";

/** One line of the controller's log. */
export type LogLine = Readonly<Record<string, unknown>> & { readonly msg: string };

/** `main.ts` as a process of its own, as a user starts it. Disposing it kills it, and it alone. */
export interface ControllerProcess extends AsyncDisposable {
  readonly pid: number;
  /** Resolves to the exit code; 128 + number when a signal ended it. */
  readonly exited: Promise<number>;
  /** Base URL of the dashboard, without the trailing slash; waits for it. */
  url(): Promise<string>;
  /** JSON of a path of the dashboard. */
  get<T = Record<string, unknown>>(path: string): Promise<T>;
  /** What it has logged so far; JSON lines only. */
  log(): Promise<LogLine[]>;
  /** Everything it has printed. */
  text(): Promise<string>;
  /** The first log line with this message, and these fields; waits for it. */
  logged(msg: string, fields?: Readonly<Record<string, unknown>>): Promise<LogLine>;
  /** Sends the signal to the process alone, or as Ctrl-C in a terminal does to its whole group. */
  signal(name: Deno.Signal, to?: "process" | "group"): void;
  /** Sends the signal and resolves to the exit code; throws when it does not end within `ms`. */
  end(name: Deno.Signal, options?: { to?: "process" | "group"; ms?: number }): Promise<number>;
}

const ROOT = new URL("../../", import.meta.url).pathname;
const PATIENCE_MS = 20_000;

/**
 * Starts the controller with a state directory of its own and nothing configured but `env`. Only the
 * system's programs and nats-server are on its PATH: jobs run by the sample runner.
 */
export async function startController(options: {
  readonly stateDir: string;
  readonly env?: Readonly<Record<string, string>>;
  /** PATH, in place of the one with nats-server. */
  readonly path?: string;
  /** Arguments of deno, in place of those that run `main.ts`. */
  readonly command?: readonly string[];
}): Promise<ControllerProcess> {
  const { stateDir } = options;
  const logFile = `${stateDir}.log`;
  // Later starts must not read what earlier ones said.
  await Deno.writeTextFile(logFile, "");
  const path = options.path ?? `${await natsFolder(stateDir)}:/usr/bin:/bin`;
  // setsid: a group of its own, as in a terminal, so that a test can press Ctrl-C for it alone.
  const child = new Deno.Command("/bin/sh", {
    args: ["-c", 'log=$1; shift; exec "$@" >>"$log" 2>&1', "sh", logFile, Deno.execPath()]
      .concat(options.command ?? ["run", "-A", "main.ts"]),
    cwd: ROOT,
    clearEnv: true,
    env: {
      ...kept(["HOME", "DENO_DIR", "TMPDIR", "XDG_CACHE_HOME", "LANG"]),
      PATH: path,
      STATE_DIR: stateDir,
      ADMIN_LISTEN: "127.0.0.1:0",
      ...options.env,
    },
    stdin: "null",
    stdout: "null",
    stderr: "null",
    detached: true,
  }).spawn();
  const state = { ended: false };
  const exited = child.status.then(({ code }) => {
    state.ended = true;
    return code;
  });
  const text = () => Deno.readTextFile(logFile);
  const log = async () => (await text()).split("\n").flatMap(lineOf);
  const failed = async (what: string) =>
    new Error(
      `${what}; its last lines:\n${(await text()).trimEnd().split("\n").slice(-8).join("\n")}`,
    );

  const controller: ControllerProcess = {
    pid: child.pid,
    exited,
    text,
    log,
    async url() {
      const { url } = await controller.logged("dashboard is up");
      return String(url).replace(/\/$/, "");
    },
    async get<T>(path: string) {
      const response = await fetch(`${await controller.url()}${path}`, {
        signal: AbortSignal.timeout(5_000),
      });
      const body = await response.text();
      if (!response.ok) throw new Error(`GET ${path}: ${response.status} ${body.slice(0, 300)}`);
      return JSON.parse(body) as T;
    },
    async logged(msg, fields = {}) {
      const found = await eventually(async () => {
        const line = (await log()).find((line) =>
          line.msg === msg && Object.entries(fields).every(([key, value]) => line[key] === value)
        );
        if (line === undefined && state.ended) return "ended";
        return line;
      }, { what: `the log line "${msg}"`, timeoutMs: PATIENCE_MS }).catch(async (cause) => {
        throw await failed(String(cause));
      });
      if (found === "ended") throw await failed(`It ended before it said "${msg}"`);
      return found;
    },
    signal(name, to = "process") {
      if (!state.ended) Deno.kill(to === "group" ? -child.pid : child.pid, name);
    },
    async end(name, { to = "process", ms = 12_000 } = {}) {
      controller.signal(name, to);
      const limit = Promise.withResolvers<undefined>();
      const timer = setTimeout(() => limit.resolve(undefined), ms);
      try {
        const code = await Promise.race([exited, limit.promise]);
        if (code === undefined) throw await failed(`It did not end within ${ms} ms of ${name}`);
        return code;
      } finally {
        clearTimeout(timer);
      }
    },
    async [Symbol.asyncDispose]() {
      controller.signal("SIGKILL");
      await exited;
    },
  };
  return controller;
}

/** A place for one controller and its successors. Disposing it ends and removes all they left. */
export interface ControllerPlace extends AsyncDisposable {
  readonly stateDir: string;
  /** Folder of its executors. */
  readonly runtimeDir: string;
  /** Live processes that belong here: the controller, its children, executors and their steps. */
  processes(): Promise<{ readonly pid: number; readonly command: string }[]>;
  /** Resolves when there is none; helpers of a controller that has ended notice it a moment later. */
  empty(): Promise<void>;
}

/** Makes a {@link ControllerPlace}; there is nothing in it yet. */
export async function createControllerPlace(): Promise<ControllerPlace> {
  const directory = await Deno.makeTempDir({ prefix: "gdr-controller-" });
  const stateDir = join(directory, "state");
  const runtimeDir = runtimePath(stateDir, { otherUsers: Deno.uid() === 0 });
  const processes = async () => {
    const found: { pid: number; command: string }[] = [];
    for await (const { name } of Deno.readDir("/proc")) {
      if (!/^[0-9]+$/.test(name)) continue;
      // Steps are known by their environment. Any of them may end while we look.
      const [command, environment] = await Promise.all(
        ["cmdline", "environ"].map((file) =>
          Deno.readTextFile(`/proc/${name}/${file}`).catch(() => "")
        ),
      );
      const texts = [command ?? "", environment ?? ""];
      if (texts.some((text) => text.includes(stateDir) || text.includes(runtimeDir))) {
        found.push({
          pid: Number(name),
          command: texts[0]?.replaceAll("\0", " ").slice(0, 200) ?? "",
        });
      }
    }
    return found;
  };
  return {
    stateDir,
    runtimeDir,
    processes,
    async empty() {
      let left: Awaited<ReturnType<typeof processes>> = [];
      await eventually(async () => (left = await processes()).length === 0, {
        what: "its processes to end",
        timeoutMs: 3_000,
      }).catch((cause) => {
        throw new Error(`Still there: ${JSON.stringify(left)}`, { cause });
      });
    },
    async [Symbol.asyncDispose]() {
      // What a killed controller leaves running on purpose.
      await eventually(async () => {
        const left = await processes();
        for (const { pid } of left) kill(pid);
        return left.length === 0;
      }, { what: "its processes to end" });
      await Deno.remove(directory, { recursive: true });
      await Deno.remove(runtimeDir, { recursive: true }).catch(() => {});
    },
  };
}

/** A folder with nothing but nats-server in it, beside the state directory. */
async function natsFolder(stateDir: string): Promise<string> {
  const folder = `${stateDir}.bin`;
  await Deno.mkdir(folder, { recursive: true });
  await Deno.symlink(await natsProgram(), join(folder, "nats-server")).catch((error) => {
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
  });
  return folder;
}

function kept(names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.flatMap((name) => {
    const value = Deno.env.get(name);
    return value === undefined ? [] : [[name, value]];
  }));
}

function lineOf(text: string): LogLine[] {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && "msg" in value ? [value as LogLine] : [];
  } catch {
    return []; // A line for people, or one that is being written.
  }
}

function kill(pid: number): void {
  try {
    Deno.kill(pid, "SIGKILL");
  } catch {
    // It has ended meanwhile.
  }
}
