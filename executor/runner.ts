import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";

/** How the runner ended. Its code says nothing about the job: 0 also for a failed one. */
export interface RunnerEnd {
  readonly code: number;
  readonly signal: string | null;
}

/** The official runner, started once, in a process group of its own. */
export interface Runner extends AsyncDisposable {
  readonly pid: number;
  /** Resolves when the process has ended, whatever its children do. Never rejects. */
  readonly ended: Promise<RunnerEnd>;
  /** Gives it its registration file: it waits for that before it calls anybody. */
  register(file: string): Promise<void>;
  /** SIGTERM to the runner itself: its steps run on until its `shutdown_timeout`. */
  terminate(): void;
  /** SIGKILL to its whole process group. Dispose does the same and waits for the end. */
  kill(): void;
}

/** What to start. */
export interface RunnerOptions {
  readonly command: readonly string[];
  /** Path of its configuration. */
  readonly config: string;
  /** All of its environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

const MAX_LINE = 4096;
const PIPES_MS = 200;

/**
 * Starts `<command> daemon --once --config <config>`: one task, then it ends. Throws `Deno.errors.*`
 * when the program cannot be started. What it prints becomes log records.
 */
export function startRunner(options: RunnerOptions): Runner {
  const [program = "", ...words] = options.command;
  const child = new Deno.Command(program, {
    args: [...words, "daemon", "--once", "--config", options.config],
    env: { ...options.env },
    clearEnv: true,
    cwd: options.cwd,
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
    detached: true,
  }).spawn();
  const printing = Promise.all([
    logLines(child.stdout, options.logger),
    logLines(child.stderr, options.logger),
  ]);
  const ended = child.status.then(({ code, signal }) => ({ code, signal }));
  let alive = true;
  const kill = () => {
    try {
      // The group outlives the runner when a step left something behind.
      Deno.kill(-child.pid, "SIGKILL");
    } catch {
      // Nobody is left.
    }
  };
  return {
    pid: child.pid,
    ended: ended.finally(() => alive = false),
    async register(file) {
      const writer = child.stdin.getWriter();
      try {
        await writer.write(new TextEncoder().encode(file));
        await writer.close();
      } catch {
        // It has ended already; `ended` says how.
      }
    },
    terminate() {
      if (!alive) return;
      try {
        Deno.kill(child.pid, "SIGTERM");
      } catch {
        // It has ended in this moment.
      }
    },
    kill,
    async [Symbol.asyncDispose]() {
      kill();
      await ended;
      await child.stdin.close().catch(() => {});
      // A step that left the group may hold the pipes for ever.
      using patience = options.clock.timeout(PIPES_MS);
      await settledOr(patience.signal, printing);
    },
  };
}

async function logLines(stream: ReadableStream<Uint8Array>, logger: Logger): Promise<void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const part of stream) {
    const lines = (rest + decoder.decode(part, { stream: true })).split("\n");
    rest = (lines.pop() ?? "").slice(0, MAX_LINE);
    for (const line of lines) say(line, logger);
  }
  say(rest, logger);
}

// deno-lint-ignore no-control-regex -- colours are made of control characters
const COLOURS = /\x1b\[[0-9;]*m/g;

function say(line: string, logger: Logger): void {
  const text = line.replace(COLOURS, "").trim();
  if (text !== "") logger.info("runner says", { line: text.slice(0, MAX_LINE) });
}

/** Resolves when the work has ended, or when the signal aborts. */
async function settledOr(signal: AbortSignal, work: Promise<unknown>): Promise<void> {
  const aborted = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => aborted.resolve(), { once: true });
  await Promise.race([work, aborted.promise]);
}
