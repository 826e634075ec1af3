import { signalProcess } from "../backends/process/proc.ts";
import { lastLinesOf } from "../backends/last_lines.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/error_text.ts";
import { keepEnd, readEnd } from "../lib/foreign_file.ts";
import type { Logger } from "../lib/logger.ts";
import { endGroup, type Pidfile, writePidfile } from "./leftover.ts";

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

/** A child could not be brought up; the message holds its last lines. */
export class ChildError extends Error {
  override readonly name = "ChildError";
}

/** Where children have their pid files and logs, and what they are run with. */
export interface Nursery {
  readonly directory: string;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** A child that was started. */
export interface RunningChild {
  readonly pid: number;
  readonly pidfile: Pidfile | undefined;
  readonly ended: Promise<Deno.CommandStatus>;
}

/** Of a log; what is older than its end goes. */
const LOG_BYTES = 1024 * 1024;
const TAIL_LINES = 12;
const TIDY_MS = 60_000;
/** From SIGTERM to SIGKILL, where the spec says nothing. */
export const GRACE_MS = 3_000;

/**
 * Starts a child and resolves when it is ready. Rejects with {@link ChildError}, or the signal's
 * reason; the child has ended then.
 */
export async function bringUp(
  nursery: Nursery,
  { spec, signal }: { readonly spec: ChildSpec; readonly signal: AbortSignal },
): Promise<RunningChild> {
  const running = await spawn(nursery, spec);
  const { readyMs = 15_000 } = spec;
  using limit = nursery.clock.timeout(readyMs);
  const over = new AbortController();
  const ready = spec.ready?.(AbortSignal.any([signal, limit.signal, over.signal])) ??
    Promise.resolve();
  try {
    const outcome = await Promise.race([ready, running.ended]);
    if (outcome === undefined) return running;
    throw new Error(describeEnd(outcome));
  } catch (cause) {
    over.abort();
    await ready.catch(() => {});
    await endChild(nursery, spec, running);
    signal.throwIfAborted();
    const why = limit.signal.aborted ? `not ready within ${readyMs / 1000} s` : messageOf(cause);
    throw new ChildError(`Start ${spec.name}: ${why}; ${await lastWords(nursery, spec)}`, {
      cause,
    });
  }
}

/** Resolves to how the child ended, or to undefined when aborted; keeps its log small meanwhile. */
export async function outlive(
  nursery: Nursery,
  child: { readonly spec: ChildSpec; readonly running: RunningChild; readonly signal: AbortSignal },
): Promise<Deno.CommandStatus | undefined> {
  const { spec, running, signal } = child;
  while (true) {
    const pause = new AbortController();
    const waiting = AbortSignal.any([signal, pause.signal]);
    const tidy = nursery.clock.sleep(TIDY_MS, waiting).then(() => undefined, () => undefined);
    const status = await Promise.race([running.ended, tidy]);
    pause.abort();
    await tidy;
    if (status !== undefined || signal.aborted) return status;
    await keepEnd(childFile(nursery, spec.name, "log"), LOG_BYTES);
  }
}

/** Ends a child with all that it has started, and removes its pid file; one that stays is logged. */
export async function endChild(
  nursery: Nursery,
  spec: ChildSpec,
  running: RunningChild,
): Promise<void> {
  const { clock, logger } = nursery;
  const { graceMs = GRACE_MS } = spec;
  if (running.pidfile === undefined) await endBySignals(running, { graceMs, clock });
  else if (!(await endGroup(running.pidfile, { graceMs, clock }))) {
    logger.error("child does not end", { child: spec.name, pid: running.pid });
    return;
  }
  await running.ended;
  await Deno.remove(childFile(nursery, spec.name, "pid")).catch(() => {});
}

/** The last lines that a child printed. */
export async function lastLinesOfChild(
  nursery: Pick<Nursery, "directory">,
  name: string,
): Promise<readonly string[]> {
  return lastLinesOf(await readEnd(childFile(nursery, name, "log"))).slice(-TAIL_LINES);
}

/** A child's pid file or log. */
export function childFile(
  { directory }: Pick<Nursery, "directory">,
  name: string,
  kind: "pid" | "log",
): string {
  return `${directory}/${name}.${kind}`;
}

/** How a child ended, in words. */
export function describeEnd({ code, signal }: Deno.CommandStatus): string {
  return signal === null ? `it ended with exit code ${code}` : `it was killed by ${signal}`;
}

async function spawn(nursery: Nursery, spec: ChildSpec): Promise<RunningChild> {
  const [program, ...args] = spec.command;
  const log = childFile(nursery, spec.name, "log");
  await keepEnd(log, LOG_BYTES);
  // The shell becomes the program: the pid is its own, and its output needs no reader. It waits for a
  // line: should we be killed before the pid file is there, by which the next start finds what runs, it ends.
  const script =
    'umask 077; log=$1; shift; read -r _ || exit 125; exec "$@" </dev/null >>"$log" 2>&1';
  const child = new Deno.Command("/bin/sh", {
    args: ["-c", script, "sh", log, program, ...args],
    clearEnv: true,
    env: { ...spec.env },
    ...(spec.cwd === undefined ? {} : { cwd: spec.cwd }),
    stdin: "piped",
    stdout: "null",
    stderr: "null",
    detached: true,
  }).spawn();
  try {
    const pidfile = await writePidfile(childFile(nursery, spec.name, "pid"), child.pid, program);
    await go(child);
    return { pid: child.pid, pidfile, ended: child.status };
  } catch (error) {
    // Nobody would ever find it again.
    signalProcess(-child.pid, "SIGKILL");
    await child.status;
    await child.stdin.abort().catch(() => {});
    throw error;
  }
}

/** Lets the shell become the program; one that has ended already is met at its status. */
async function go({ stdin }: Deno.ChildProcess): Promise<void> {
  const writer = stdin.getWriter();
  try {
    await writer.write(new TextEncoder().encode("\n"));
    await writer.close();
  } catch (error) {
    if (!(error instanceof Deno.errors.BrokenPipe)) throw error;
  } finally {
    writer.releaseLock();
  }
}

/** Where there is no /proc: it is our own child, not waited for yet, so the pid is its own. */
async function endBySignals(
  { pid, ended }: RunningChild,
  { graceMs, clock }: { readonly graceMs: number; readonly clock: Clock },
): Promise<void> {
  signalProcess(-pid, "SIGTERM");
  const pause = new AbortController();
  const patience = clock.sleep(graceMs, pause.signal).catch(() => {});
  await Promise.race([ended, patience]);
  pause.abort();
  await patience;
  signalProcess(-pid, "SIGKILL");
}

async function lastWords(nursery: Nursery, { name }: ChildSpec): Promise<string> {
  const lines = await lastLinesOfChild(nursery, name);
  return lines.length === 0
    ? `it wrote nothing to "${childFile(nursery, name, "log")}": is the disk full?`
    : `its last lines: ${lines.join(" | ")}`;
}
