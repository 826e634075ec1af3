import { abortable } from "../lib/abortable.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { logLines } from "./runner_output.ts";
import { endProcessesOfSession } from "./session.ts";

/** How the runner ended. Its code says nothing about the job: 0 also for a failed one. */
export interface RunnerEnd {
  readonly code: number;
  readonly signal: string | null;
}

/** The official runner, started once, in a session of its own. */
export interface Runner extends AsyncDisposable {
  readonly pid: number;
  /** Resolves when the process has ended, whatever its children do. Never rejects. */
  readonly ended: Promise<RunnerEnd>;
  /** Gives it its registration file: it waits for that before it calls anybody. */
  register(file: string): Promise<void>;
  /** SIGTERM to the runner itself: its steps run on until its `shutdown_timeout`. */
  terminate(): void;
  /**
   * SIGKILL to what steps that are over have left running. The runner kills a step's own process
   * only, then waits for everything that holds its output. Never rejects.
   */
  endOrphans(): Promise<void>;
  /** SIGKILL to it. Dispose does the same, to what its steps left running, too, and waits for the end. */
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
  let alive = true;
  const ended = child.status.then(({ code, signal }) => {
    alive = false;
    return { code, signal };
  });
  const signal = (name: Deno.Signal) => {
    if (!alive) return;
    try {
      Deno.kill(child.pid, name);
    } catch {
      // It has ended in this moment.
    }
  };
  const endSession = async (which: "all" | "orphans") => {
    try {
      await endProcessesOfSession(child.pid, which);
    } catch (error) {
      options.logger.warn("what steps left running was not ended", { error });
    }
  };
  return {
    pid: child.pid,
    ended,
    async register(file) {
      const writer = child.stdin.getWriter();
      try {
        await writer.write(new TextEncoder().encode(file));
        await writer.close();
      } catch {
        // It has ended already; `ended` says how.
      }
    },
    terminate: () => signal("SIGTERM"),
    kill: () => signal("SIGKILL"),
    endOrphans: () => endSession("orphans"),
    async [Symbol.asyncDispose]() {
      signal("SIGKILL");
      await ended;
      await endSession("all");
      await child.stdin.close().catch(() => {});
      // A step that left the group may hold the pipes for ever.
      using patience = options.clock.timeout(PIPES_MS);
      await abortable(printing, patience.signal).catch(() => {});
    },
  };
}
