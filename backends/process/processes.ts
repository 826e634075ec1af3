import { BackendError } from "../../controller/backend.ts";
import type { Clock } from "../../lib/clock.ts";
import {
  isAlive,
  isDead,
  listProcesses,
  ownerOf,
  type ProcessRef,
  type ProcessStat,
  readStat,
  signalProcess,
  startedWith,
} from "./proc.ts";

/** Whose processes are meant. */
export interface Target {
  readonly folder: string;
  /** The wrapper, leader of the session; null when it is not known (meta.json cannot be read). */
  readonly leader: ProcessRef | null;
  readonly userId: number | null;
}

const POLL_MS = 40;
const KILL_MS = 5000;

/**
 * Every live process of an executor: those of its session, those of its own user, and those that
 * still carry its folder in their environment (they left the session). Nothing that started before
 * it, and nothing of a session whose leader's pid was used again, is ever among them.
 */
async function processesOf({ folder, leader, userId }: Target): Promise<ProcessStat[]> {
  const all = (await listProcesses()).filter((stat) => !isDead(stat) && stat.pid !== Deno.pid);
  const holder = leader === null ? undefined : await readStat(leader.pid);
  const marks = [`HOME=${folder}/home`, `TMPDIR=${folder}/tmp`];
  const found = await Promise.all(all.map(async (stat) => {
    if (leader !== null && BigInt(stat.startTime) < BigInt(leader.startTime)) return false;
    // The leader is there, alive or not yet reaped: the kernel has not given its pid away.
    if (leader !== null && stat.session === leader.pid && holder?.startTime === leader.startTime) {
      return true;
    }
    if (userId !== null && await ownerOf(stat.pid) === userId) return true;
    return await startedWith(stat.pid, marks);
  }));
  return all.filter((_, index) => found[index]);
}

/**
 * Ends all of them: SIGTERM to the process group, `graceMs` to end by themselves, then SIGKILL.
 * Throws {@link BackendError} `unavailable` when some do not die within 5 s.
 */
export async function endProcesses(
  target: Target,
  options: { readonly graceMs: number; readonly clock: Clock; readonly signal: AbortSignal },
): Promise<void> {
  const { clock, signal } = options;
  const { leader } = target;
  if (leader !== null && await isAlive(leader)) signalProcess(-leader.pid, "SIGTERM");
  else for (const stat of await processesOf(target)) await signalExactly(stat, "SIGTERM");
  const graceEnds = clock.monotonic() + options.graceMs;
  while (clock.monotonic() < graceEnds && await livesOn(target)) await clock.sleep(POLL_MS, signal);
  const killEnds = clock.monotonic() + KILL_MS;
  while (true) {
    const isKilled = target.userId === null || await killUser(target.userId);
    const left = await processesOf(target);
    if (isKilled && left.length === 0) return;
    if (clock.monotonic() > killEnds) {
      const which = left.length === 0 ? `of user ${target.userId}` : left.map(({ pid }) => pid);
      throw new BackendError("unavailable", `End the processes ${which}: alive 5 s after SIGKILL`);
    }
    for (const stat of left) await signalExactly(stat, "SIGKILL");
    await clock.sleep(POLL_MS, signal);
  }
}

/**
 * SIGKILL to every process of a user in one system call: one that forks faster than /proc can be read
 * would escape otherwise, and live on as the user of a later job. False when it has to be repeated.
 */
async function killUser(userId: number): Promise<boolean> {
  if (userId === 0 || userId === Deno.uid()) {
    throw new TypeError(`End the processes of user ${userId}: those are not an executor's alone`);
  }
  const { signal } = await new Deno.Command("/bin/sh", {
    args: ["-c", "kill -9 -1"],
    clearEnv: true,
    cwd: "/",
    uid: userId,
    gid: userId,
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).output();
  // The caller itself is spared; a process of that user may have been faster.
  return signal === null;
}

/** Cheap while the leader lives; only then is everything looked at. */
async function livesOn(target: Target): Promise<boolean> {
  if (target.leader !== null && await isAlive(target.leader)) return true;
  return (await processesOf(target)).length > 0;
}

/** Never a process that only has the same pid. */
async function signalExactly(stat: ProcessStat, signal: Deno.Signal): Promise<void> {
  if (await isAlive(stat)) signalProcess(stat.pid, signal);
}
