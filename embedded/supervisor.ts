import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { createTaskGroup } from "../lib/task_group.ts";
import {
  bringUp,
  childFile,
  type ChildSpec,
  describeEnd,
  endChild,
  GRACE_MS,
  lastLinesOfChild,
  type Nursery,
  outlive,
  type RunningChild,
} from "./child_process.ts";
import { endGroup, readPidfile } from "./leftover.ts";

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
   * Rejects with `ChildError` when it ends or is not ready in time, or with the signal's reason; then
   * it does not run.
   */
  start(spec: ChildSpec, call: { readonly signal: AbortSignal }): Promise<Child>;
}

const BACKOFF_MS = { first: 200, most: 5000 } as const;
/** A child that ran this long starts again without delay. */
const SETTLED_MS = 10_000;

/** One child under supervision; `current` is null while it is down. */
interface Supervised {
  readonly spec: ChildSpec;
  current: RunningChild | null;
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
  nursery: { readonly directory: string; readonly logger: Logger; readonly clock: Clock },
): Supervisor {
  const { logger, clock } = nursery;
  const children: { readonly name: string; stop(): Promise<void> }[] = [];

  return {
    endLeftovers: () => endLeftovers(nursery),
    async start(spec, { signal }) {
      const { name, graceMs = GRACE_MS } = spec;
      if (!/^[A-Za-z0-9-]+$/.test(name) || children.some((one) => one.name === name)) {
        throw new TypeError(`Cannot start the child "${name}": a new plain name is needed`);
      }
      signal.throwIfAborted();
      const left = await readPidfile(childFile(nursery, name, "pid"));
      if (left !== undefined) await endGroup(left, { graceMs, clock });
      const group = createTaskGroup(logger);
      const current = await bringUp(nursery, { spec, signal });
      const child: Supervised = { spec, current, restarts: 0 };
      children.push({
        name,
        async stop() {
          await group[Symbol.asyncDispose]();
          if (child.current !== null) await endChild(nursery, spec, child.current);
          child.current = null;
        },
      });
      logger.info("child started", { child: name, pid: current.pid });
      group.spawn(name, (stopping) => keepRunning(nursery, child, stopping));
      return {
        name,
        get pid() {
          return child.current?.pid ?? null;
        },
        get restarts() {
          return child.restarts;
        },
        lastLines: () => lastLinesOfChild(nursery, name),
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

/** Starts the child again whenever it has ended, until aborted: then it runs, or is down. */
async function keepRunning(
  nursery: Nursery,
  child: Supervised,
  signal: AbortSignal,
): Promise<void> {
  const { logger, clock } = nursery;
  const { spec } = child;
  let delay: number = BACKOFF_MS.first;
  while (!signal.aborted) {
    const running = child.current;
    if (running !== null) {
      const since = clock.monotonic();
      const status = await outlive(nursery, { spec, running, signal });
      if (signal.aborted || status === undefined) return;
      logger.warn("child ended", { child: spec.name, pid: running.pid, why: describeEnd(status) });
      child.current = null;
      // Grandchildren must not hold its data or port.
      await endChild(nursery, spec, running);
      if (clock.monotonic() - since > SETTLED_MS) delay = BACKOFF_MS.first;
    }
    try {
      await clock.sleep(delay, signal);
      delay = Math.min(delay * 2, BACKOFF_MS.most);
      child.restarts++;
      child.current = await bringUp(nursery, { spec, signal });
      logger.info("child started again", { child: spec.name, pid: child.current.pid });
    } catch (error) {
      if (signal.aborted) return;
      logger.error("child cannot be started", { child: spec.name, error });
    }
  }
}

async function endLeftovers({ directory, logger, clock }: Nursery): Promise<void> {
  for await (const { name } of Deno.readDir(directory)) {
    if (!name.endsWith(".pid")) continue;
    const left = await readPidfile(`${directory}/${name}`);
    if (left !== undefined) {
      logger.info("ending what an earlier run left", { pid: left.pid, program: left.exe });
      await endGroup(left, { graceMs: GRACE_MS, clock });
    }
    await Deno.remove(`${directory}/${name}`).catch(() => {});
  }
}
