import { onAbort } from "../../lib/abortable.ts";
import { readUntil } from "../../lib/bytes.ts";

/** What a program that has ended left behind. */
export interface Output {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** How a program is started. */
export interface StartOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Start from an empty environment, not from ours. */
  readonly clearEnv?: boolean;
  readonly cwd?: string;
}

/** From SIGTERM to SIGKILL of a program that is to end. */
const PATIENCE_MS = 10_000;
/** For the output of a program that has ended: what it has started may hold it open. */
const LAST_WORDS_MS = 5_000;

/**
 * Runs a program to its end and resolves to what it printed. Rejects when it cannot be started, when
 * its exit code is not 0 (with its last lines), or with the signal's reason when that aborts; the
 * program has ended then, by SIGTERM or 10 s later by SIGKILL.
 */
export async function run(
  command: string,
  args: readonly string[],
  options: StartOptions & { readonly signal?: AbortSignal; readonly lastWordsMs?: number } = {},
): Promise<Output> {
  const { signal, lastWordsMs = LAST_WORDS_MS } = options;
  signal?.throwIfAborted();
  const child = new Deno.Command(command, {
    args: [...args],
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
    ...placeOf(options),
  }).spawn();
  const timers: ReturnType<typeof setTimeout>[] = [];
  const send = (name: Deno.Signal) => {
    try {
      child.kill(name);
    } catch {
      // It has ended already.
    }
  };
  using _ending = signal === undefined ? undefined : onAbort(signal, () => {
    send("SIGTERM");
    timers.push(setTimeout(() => send("SIGKILL"), PATIENCE_MS));
  });
  const enough = new AbortController();
  const printed = [child.stdout, child.stderr].map((stream) => readUntil(stream, enough.signal));
  const { code } = await child.status;
  timers.push(setTimeout(() => enough.abort(), lastWordsMs));
  const [stdout = "", stderr = ""] = await Promise.all(printed);
  for (const timer of timers) clearTimeout(timer);
  signal?.throwIfAborted();
  if (code !== 0) {
    const said = `${stdout}\n${stderr}`.trim().split("\n").slice(-15).join("\n");
    throw new Error(
      `Run "${[command, ...args.slice(0, 3)].join(" ")}": exit code ${code}\n${said}`,
    );
  }
  return { code, stdout, stderr };
}

/** A program that runs beside the test; disposing it stops it. */
export interface RunningProcess extends AsyncDisposable {
  readonly pid: number;
  /** File with everything it printed. */
  readonly logFile: string;
  /** Resolves to its exit code (128 + number when a signal ended it). */
  readonly exited: Promise<number>;
  /** Resolves when it has ended: SIGTERM, then SIGKILL after `patienceMs`. */
  stop(patienceMs?: number): Promise<number>;
  /** Kills it as a crash would: SIGKILL to this process alone. */
  kill(): Promise<number>;
  /** The last lines of its log. */
  tail(lines: number): Promise<string>;
}

/**
 * Starts a program with its output going to `logFile`. Rejects only when the shell cannot be started;
 * a program that ends at once is seen at `exited`. When the signal aborts it gets SIGTERM.
 */
export async function startProcess(
  command: string,
  args: readonly string[],
  options: StartOptions & { readonly logFile: string; readonly signal?: AbortSignal },
): Promise<RunningProcess> {
  options.signal?.throwIfAborted();
  await Deno.writeTextFile(options.logFile, "", { append: true });
  // The shell is replaced by the program: the pid is the program's own, and no pipe has to be read.
  const child = new Deno.Command("sh", {
    args: ["-c", 'log=$1; shift; exec "$@" >>"$log" 2>&1', "sh", options.logFile, command, ...args],
    stdin: "null",
    stdout: "null",
    stderr: "null",
    ...placeOf(options),
  }).spawn();
  const state = { ended: false };
  const send = (signal: Deno.Signal) => {
    if (!state.ended) child.kill(signal);
  };
  const stopping = options.signal && onAbort(options.signal, () => send("SIGTERM"));
  const exited = child.status.then((status) => {
    state.ended = true;
    stopping?.[Symbol.dispose]();
    return status.code;
  });
  const stop = async (patienceMs = 15_000) => {
    send("SIGTERM");
    const timer = setTimeout(() => send("SIGKILL"), patienceMs);
    try {
      return await exited;
    } finally {
      clearTimeout(timer);
    }
  };
  return {
    pid: child.pid,
    logFile: options.logFile,
    exited,
    stop,
    kill() {
      send("SIGKILL");
      return exited;
    },
    async tail(lines) {
      return (await Deno.readTextFile(options.logFile)).trimEnd().split("\n").slice(-lines).join(
        "\n",
      );
    },
    async [Symbol.asyncDispose]() {
      await stop();
    },
  };
}

/** Where and with what a program runs, as `Deno.Command` takes it. */
function placeOf({ env, clearEnv, cwd }: StartOptions): Deno.CommandOptions {
  return {
    ...env === undefined ? {} : { env: { ...env } },
    ...clearEnv === undefined ? {} : { clearEnv },
    ...cwd === undefined ? {} : { cwd },
  };
}
