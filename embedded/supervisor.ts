import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { signalProcess } from "../backends/process/proc.ts";
import { createTaskGroup } from "../lib/task_group.ts";
import { boundLog, tailLog } from "./child_log.ts";
import { endGroup, type Pidfile, readPidfile, writePidfile } from "./leftover.ts";

/** A child that is to run as long as we do. */
export interface ChildSpec {
  /** Names its pid file and log: letters, digits, `-`. */
  readonly name: string;
  readonly command: readonly [string, ...string[]];
  /** Its whole environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Resolves when it answers; polls until then. Default: at once. */
  readonly ready?: (signal: AbortSignal) => Promise<void>;
  /** From start to ready; default 15 s. */
  readonly readyMs?: number;
  /** From SIGTERM to SIGKILL; default 3 s. */
  readonly graceMs?: number;
}

/** A child as it is now. */
export interface Child {
  readonly name: string;
  /** Null while it is down. */
  readonly pid: number | null;
  /** How often it had to be started again. */
  readonly restarts: number;
  /** Last lines that it printed. */
  lastLines(): Promise<readonly string[]>;
}

/** Runs children of this process (nats-server, the sample forge); disposing stops all, last first. */
export interface Supervisor extends AsyncDisposable {
  /** Ends what an earlier run of this directory, killed by force, left running. Call before choosing ports. */
  endLeftovers(): Promise<void>;
  /**
   * Starts a child and resolves once it is ready; from then on it is started again whenever it ends.
   * Rejects with {@link ChildError} when it ends or is not ready in time, or with the signal's reason;
   * then it does not run.
   */
  start(spec: ChildSpec, call: { readonly signal: AbortSignal }): Promise<Child>;
}

/** A child could not be brought up; the message holds its last lines. */
export class ChildError extends Error {
  override readonly name = "ChildError";
}

const BACKOFF_MS = { first: 200, most: 5000 } as const;
/** A child that ran this long starts again without delay. */
const SETTLED_MS = 10_000;
const TIDY_MS = 60_000;

interface Running {
  readonly pid: number;
  readonly pidfile: Pidfile | undefined;
  readonly ended: Promise<Deno.CommandStatus>;
}

/** One child under supervision; `current` is null while it is down. */
interface State {
  readonly spec: ChildSpec;
  current: Running | null;
  restarts: number;
}

/**
 * Makes a {@link Supervisor}. Children have a session of their own, so that Ctrl-C in a terminal
 * reaches us alone and we stop them in order; `directory` holds their pid files and logs.
 *
 * ```
 *  start --> ready --> ended --(back-off)--> start        stop: TERM --> KILL, never started again
 * ```
 */
export function createSupervisor(
  options: { readonly directory: string; readonly logger: Logger; readonly clock: Clock },
): Supervisor {
  const { directory, logger, clock } = options;
  const children: { readonly spec: ChildSpec; stop(): Promise<void> }[] = [];
  const file = (name: string, kind: "pid" | "log") => `${directory}/${name}.${kind}`;

  const spawn = async (spec: ChildSpec): Promise<Running> => {
    const [program, ...args] = spec.command;
    const log = file(spec.name, "log");
    await boundLog(log);
    // The shell becomes the program: the pid is its own, and its output needs no reader.
    const child = new Deno.Command("/bin/sh", {
      args: [
        "-c",
        'umask 077; log=$1; shift; exec "$@" >>"$log" 2>&1',
        "sh",
        log,
        program,
        ...args,
      ],
      clearEnv: true,
      env: { ...spec.env },
      ...(spec.cwd === undefined ? {} : { cwd: spec.cwd }),
      stdin: "null",
      stdout: "null",
      stderr: "null",
      detached: true,
    }).spawn();
    const pidfile = await writePidfile(file(spec.name, "pid"), child.pid, program)
      .catch(async (error) => {
        // Nobody would ever find it again.
        signalProcess(-child.pid, "SIGKILL");
        await child.status;
        throw error;
      });
    return { pid: child.pid, pidfile, ended: child.status };
  };

  const end = async (spec: ChildSpec, running: Running) => {
    const { graceMs = 3000 } = spec;
    if (running.pidfile === undefined) await endBySignals(running, graceMs);
    else if (!(await endGroup(running.pidfile, { graceMs, clock }))) {
      logger.error("child does not end", { child: spec.name, pid: running.pid });
      return;
    }
    await running.ended;
    await Deno.remove(file(spec.name, "pid")).catch(() => {});
  };

  /** Where there is no /proc: it is our own child, not waited for yet, so the pid is its own. */
  const endBySignals = async ({ pid, ended }: Running, graceMs: number) => {
    signalProcess(-pid, "SIGTERM");
    const pause = new AbortController();
    const patience = clock.sleep(graceMs, pause.signal).catch(() => {});
    await Promise.race([ended, patience]);
    pause.abort();
    await patience;
    signalProcess(-pid, "SIGKILL");
  };

  /** Resolves when ready; throws ChildError, the child being ended then. */
  const bringUp = async (spec: ChildSpec, signal: AbortSignal): Promise<Running> => {
    const running = await spawn(spec);
    const { readyMs = 15_000 } = spec;
    using limit = clock.timeout(readyMs);
    const over = new AbortController();
    const ready = spec.ready?.(AbortSignal.any([signal, limit.signal, over.signal])) ??
      Promise.resolve();
    try {
      const outcome = await Promise.race([ready, running.ended]);
      if (outcome === undefined) return running;
      throw new Error(describe(outcome));
    } catch (cause) {
      over.abort();
      await ready.catch(() => {});
      await end(spec, running);
      signal.throwIfAborted();
      const why = limit.signal.aborted
        ? `not ready within ${readyMs / 1000} s`
        : cause instanceof Error
        ? cause.message
        : String(cause);
      const lines = await tailLog(file(spec.name, "log"));
      throw new ChildError(
        `Start ${spec.name}: ${why}; ${
          lines.length === 0
            ? `it wrote nothing to "${file(spec.name, "log")}": is the disk full?`
            : `its last lines: ${lines.join(" | ")}`
        }`,
        { cause },
      );
    }
  };

  /** Resolves when the child has ended; keeps its log small meanwhile. */
  const outlive = async (spec: ChildSpec, running: Running, signal: AbortSignal) => {
    while (true) {
      const pause = new AbortController();
      const waiting = AbortSignal.any([signal, pause.signal]);
      const tidy = clock.sleep(TIDY_MS, waiting).catch(() => {});
      const status = await Promise.race([running.ended, tidy]);
      pause.abort();
      await tidy;
      if (status !== undefined || signal.aborted) return status;
      await boundLog(file(spec.name, "log"));
    }
  };

  const keepRunning = async (state: State, signal: AbortSignal) => {
    const { spec } = state;
    let delay: number = BACKOFF_MS.first;
    while (!signal.aborted) {
      const running = state.current;
      if (running !== null) {
        const since = clock.monotonic();
        const status = await outlive(spec, running, signal);
        if (signal.aborted || status === undefined) return;
        logger.warn("child ended", { child: spec.name, pid: running.pid, why: describe(status) });
        state.current = null;
        // Grandchildren must not hold its data or port.
        await end(spec, running);
        if (clock.monotonic() - since > SETTLED_MS) delay = BACKOFF_MS.first;
      }
      try {
        await clock.sleep(delay, signal);
        delay = Math.min(delay * 2, BACKOFF_MS.most);
        state.restarts++;
        state.current = await bringUp(spec, signal);
        logger.info("child started again", { child: spec.name, pid: state.current.pid });
      } catch (error) {
        if (signal.aborted) return;
        logger.error("child cannot be started", { child: spec.name, error });
      }
    }
  };

  return {
    async endLeftovers() {
      for await (const { name } of Deno.readDir(directory)) {
        if (!name.endsWith(".pid")) continue;
        const left = await readPidfile(`${directory}/${name}`);
        if (left !== undefined) {
          logger.info("ending what an earlier run left", { pid: left.pid, program: left.exe });
          await endGroup(left, { graceMs: 3000, clock });
        }
        await Deno.remove(`${directory}/${name}`).catch(() => {});
      }
    },
    async start(spec, { signal }) {
      if (
        !/^[A-Za-z0-9-]+$/.test(spec.name) || children.some((one) => one.spec.name === spec.name)
      ) {
        throw new TypeError(`Cannot start the child "${spec.name}": a new plain name is needed`);
      }
      signal.throwIfAborted();
      const left = await readPidfile(file(spec.name, "pid"));
      if (left !== undefined) await endGroup(left, { graceMs: spec.graceMs ?? 3000, clock });
      const group = createTaskGroup(logger);
      const state: State = { spec, current: await bringUp(spec, signal), restarts: 0 };
      const child = {
        spec,
        async stop() {
          await group[Symbol.asyncDispose]();
          if (state.current !== null) await end(spec, state.current);
          state.current = null;
        },
      };
      children.push(child);
      logger.info("child started", { child: spec.name, pid: state.current?.pid ?? null });
      group.spawn(spec.name, (stopping) => keepRunning(state, stopping));
      return {
        name: spec.name,
        get pid() {
          return state.current?.pid ?? null;
        },
        get restarts() {
          return state.restarts;
        },
        lastLines: () => tailLog(file(spec.name, "log")),
      };
    },
    async [Symbol.asyncDispose]() {
      while (true) {
        const last = children.pop();
        if (last === undefined) return;
        await last.stop();
      }
    },
  };
}

function describe({ code, signal }: Deno.CommandStatus): string {
  return signal === null ? `it ended with exit code ${code}` : `it was killed by ${signal}`;
}
