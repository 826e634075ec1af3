import {
  bootId,
  isAlive,
  isDead,
  listProcesses,
  type ProcessRef,
  readStat,
  signalProcess,
} from "../backends/process/proc.ts";
import type { Clock } from "../lib/clock.ts";
import { objectOrEmpty } from "../lib/json_object.ts";
import { replaceFile } from "../lib/replace_file.ts";

/** What a pid file says about a child: enough to know it again for sure. */
export interface Pidfile extends ProcessRef {
  readonly bootId: string;
  readonly exe: string;
}

const POLL_MS = 30;
const KILL_MS = 3000;

/** Writes the pid file of a child that was just started. */
export async function writePidfile(
  path: string,
  pid: number,
  exe: string,
): Promise<Pidfile | undefined> {
  const stat = await readStat(pid);
  if (stat === undefined) return undefined;
  const pidfile: Pidfile = { pid, startTime: stat.startTime, bootId: await bootId(), exe };
  await replaceFile(path, `${JSON.stringify(pidfile)}\n`);
  return pidfile;
}

/** Reads a pid file; undefined when it is absent, not ours, or of an earlier boot. */
export async function readPidfile(path: string): Promise<Pidfile | undefined> {
  try {
    const value: unknown = JSON.parse(await Deno.readTextFile(path));
    const { pid, startTime, bootId: boot, exe } = objectOrEmpty(value);
    if (typeof pid !== "number" || typeof startTime !== "string") return undefined;
    if (typeof boot !== "string" || typeof exe !== "string") return undefined;
    return boot === await bootId() ? { pid, startTime, bootId: boot, exe } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Ends a child with all of its process group: SIGTERM, `graceMs`, SIGKILL. A process that only has
 * the same pid is never touched. Resolves to false when something is alive 3 s after SIGKILL.
 */
export async function endGroup(
  child: ProcessRef,
  options: { readonly graceMs: number; readonly clock: Clock },
): Promise<boolean> {
  const { clock, graceMs } = options;
  if (await isAlive(child)) {
    signalProcess(-child.pid, "SIGTERM");
    // One that is frozen hears it only when it goes on.
    signalProcess(-child.pid, "SIGCONT");
  }
  const graceEnds = clock.monotonic() + graceMs;
  while (clock.monotonic() < graceEnds && await isAlive(child)) await clock.sleep(POLL_MS);
  const killEnds = clock.monotonic() + KILL_MS;
  while (true) {
    const left = await groupOf(child);
    if (left.length === 0) return true;
    if (clock.monotonic() > killEnds) return false;
    for (const member of left) if (await isAlive(member)) signalProcess(member.pid, "SIGKILL");
    await clock.sleep(POLL_MS);
  }
}

/** Live processes of the child's session. Without its leader, a pid used again means another session. */
async function groupOf(child: ProcessRef): Promise<ProcessRef[]> {
  const all = await listProcesses();
  const leader = all.find(({ pid }) => pid === child.pid);
  if (leader !== undefined && leader.startTime !== child.startTime) return [];
  return all.filter((stat) =>
    stat.session === child.pid && !isDead(stat) && BigInt(stat.startTime) >= BigInt(child.startTime)
  );
}
