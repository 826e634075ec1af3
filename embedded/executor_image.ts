import { join, resolve } from "node:path";
import { GATE_FLAGS, GATE_PERMISSIONS } from "../backends/gate_flags.ts";
import { signalProcess } from "../backends/process/proc.ts";
import { bundleProgram } from "../clients/esbuild/program.ts";
import { onAbort } from "../lib/abortable.ts";
import { closedFolder } from "../lib/closed_folder.ts";
import type { Logger } from "../lib/logger.ts";

/** How process executors are started. */
export interface ExecutorImage {
  /** Program and arguments of the identity gate. */
  readonly command: readonly string[];
  /** Added to the launch environment of every executor; no secret. */
  readonly environment: Readonly<Record<string, string>>;
  /** What runs the jobs. */
  readonly runner: "official" | "sample";
}

/** What {@link installExecutor} needs. */
export interface ExecutorImageOptions {
  /** Made if absent. With `root`, it and all its parents must be open to other users (`--x`). */
  readonly directory: string;
  /** True when each executor gets a user of its own: programs are then copied, closed to reading. */
  readonly root: boolean;
  /** The official runner: a path; null to take the sample runner; by default looked for on `path`. */
  readonly runnerBin?: string | null;
  /** Folders to look for the runner in, and what jobs find as PATH; a usual one by default. */
  readonly path?: string;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const GATE = new URL("../executor/main.ts", import.meta.url);
const SAMPLE_RUNNER = new URL("./sample_runner/main.ts", import.meta.url);
const RUNNER_NAMES = ["gitea-runner", "act_runner"];

/**
 * Puts the identity gate, and with it what the image of a Pod would hold, into a folder: bundles
 * named by their content, V8's code cache for them, and with `root` the two programs, owned by root
 * with mode 0711, so that steps cannot read the memory or environment of the processes of their own
 * user. Repeating it changes nothing. Rejects when the folder cannot be written or reached by others, or
 * with the signal's reason; nothing of it runs then.
 */
export async function installExecutor(options: ExecutorImageOptions): Promise<ExecutorImage> {
  const { root, logger, signal, path = DEFAULT_PATH } = options;
  const directory = resolve(options.directory);
  const mode = root ? 0o755 : 0o700;
  const bin = join(directory, "bin");
  const cache = join(directory, "cache");
  for (const folder of [directory, bin, cache]) {
    await Deno.mkdir(folder, { recursive: true, mode });
    await Deno.chmod(folder, mode);
  }
  if (root) await refuseClosed(directory);
  const official = options.runnerBin === undefined ? await findRunner(path) : options.runnerBin;
  const install = (program: string, name: string) =>
    root ? installProgram(program, join(bin, name)) : Promise.resolve(program);
  const bundle = (source: URL, name: string) =>
    installBundle(source, join(directory, name), signal);
  const [deno, gate, program] = await Promise.all([
    install(Deno.execPath(), "deno"),
    bundle(GATE, "gate"),
    official === null ? bundle(SAMPLE_RUNNER, "sample") : install(official, "gitea-runner"),
  ]);
  const run = (file: string) => [deno, "run", ...GATE_FLAGS, ...GATE_PERMISSIONS, file];
  for (const file of official === null ? [gate, program] : [gate]) {
    await warm(run(file), { bundle: file, cache, signal });
  }
  const runner = official === null ? "sample" : "official";
  logger.info("executor installed", { directory, runner, program: official });
  return {
    command: run(gate),
    environment: {
      PATH: path,
      DENO_DIR: cache,
      DENO_NO_UPDATE_CHECK: "1",
      DENO_TLS_CA_STORE: "system,mozilla",
      CI_RUNNER_BIN: official === null
        // The gate takes Deno's own variables from the runner's environment: no step meets them.
        ? JSON.stringify(["/usr/bin/env", `DENO_DIR=${cache}`, ...run(program)])
        : program,
    },
    runner,
  };
}

/** The official runner on `path`, or null. */
export async function findRunner(path: string): Promise<string | null> {
  for (const folder of path.split(":")) {
    for (const name of RUNNER_NAMES) {
      const file = join(folder, name);
      const info = await Deno.stat(file).catch(() => undefined);
      if (folder !== "" && info?.isFile && ((info.mode ?? 0) & 0o111) !== 0) return file;
    }
  }
  return null;
}

/** Copied, not linked: a link would share its mode with the original. */
async function installProgram(from: string, to: string): Promise<string> {
  const [source, target] = await Promise.all([
    Deno.stat(from),
    Deno.stat(to).catch(() => undefined),
  ]);
  const sameAge = target?.mtime?.getTime() === source.mtime?.getTime();
  if (target?.size === source.size && sameAge) return to;
  // Under another name first: executors may be running the old one.
  const part = `${to}.${crypto.randomUUID()}`;
  await Deno.copyFile(from, part);
  if (Deno.uid() === 0) await Deno.chown(part, 0, 0);
  await Deno.chmod(part, 0o711);
  if (source.mtime !== null) await Deno.utime(part, source.mtime, source.mtime);
  await Deno.rename(part, to);
  return to;
}

/** Writes the bundle under a name with its hash; executors that run an older one keep it. */
async function installBundle(source: URL, prefix: string, signal: AbortSignal): Promise<string> {
  const text = await bundleProgram(source, { signal });
  const bytes = new TextEncoder().encode(text);
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex().slice(0, 16);
  const file = `${prefix}-${hash}.mjs`;
  const part = `${file}.${crypto.randomUUID()}`;
  await Deno.writeFile(part, bytes, { mode: 0o644 });
  await Deno.rename(part, file);
  return file;
}

/**
 * Runs the program without what it needs, so that V8's code cache is there: 0.15 s and 25 MB less
 * for each executor. The cache stays ours: who could write it could change the program. The second
 * run puts SQLite's log in order after the first, which others cannot do in a folder they only read. One
 * that was killed in the middle of it, by Ctrl-C perhaps, is made up for by the next start.
 */
async function warm(
  command: readonly string[],
  { bundle, cache, signal }: {
    readonly bundle: string;
    readonly cache: string;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const marker = join(cache, `${bundle.slice(bundle.lastIndexOf("/") + 1)}.warm`);
  if (await Deno.stat(marker).then(() => true, () => false)) return;
  const [program = "", ...args] = command;
  for (let run = 0; run < 2; run++) {
    signal.throwIfAborted();
    const child = new Deno.Command(program, {
      args,
      clearEnv: true,
      env: { DENO_DIR: cache, DENO_NO_UPDATE_CHECK: "1" },
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).spawn();
    using _ending = onAbort(signal, () => signalProcess(child.pid, "SIGKILL"));
    if ((await child.status).signal !== null) return signal.throwIfAborted();
  }
  await Deno.writeTextFile(marker, "");
}

async function refuseClosed(directory: string): Promise<void> {
  const closed = await closedFolder(directory);
  if (closed === undefined) return;
  throw new Error(
    `Install executor in "${directory}": other users cannot enter "${closed}": give it mode 0711, or choose another folder`,
  );
}
