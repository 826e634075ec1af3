import { BackendError } from "../../controller/backend.ts";
import { onAbort } from "../../lib/abortable.ts";
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
/** The one system call of the shell that does it. */
const KILL_USER_MS = 1000;

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
  if (leader !== null && await isAlive(leader)) {
    signalProcess(-leader.pid, "SIGTERM");
    // One that is frozen hears it only when it goes on.
    signalProcess(-leader.pid, "SIGCONT");
  } else for (const stat of await processesOf(target)) await signalExactly(stat, "SIGTERM");
  const graceEnds = clock.monotonic() + options.graceMs;
  while (clock.monotonic() < graceEnds && await livesOn(target)) await clock.sleep(POLL_MS, signal);
  const killEnds = clock.monotonic() + KILL_MS;
  while (true) {
    const isKilled = target.userId === null || await killUser(target.userId, clock);
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
 * would escape otherwise, and live on as the user of a later job. False when it has to be repeated: a
 * process of that user may have killed the caller first, or frozen it.
 */
async function killUser(userId: number, clock: Clock): Promise<boolean> {
  if (userId === 0 || userId === Deno.uid()) {
    throw new TypeError(`End the processes of user ${userId}: those are not an executor's alone`);
  }
  const killer = killerOf(userId, await chroot()).spawn();
  using limit = clock.timeout(KILL_USER_MS);
  using _ending = onAbort(limit.signal, () => signalProcess(killer.pid, "SIGKILL"));
  const { signal } = await killer.status;
  return signal === null;
}

/**
 * It becomes that user only after it has been started, by coreutils' `chroot` to where it is. Starting a
 * program as another user waits, and this whole process with it, until the new process has left our
 * code: one that its own user freezes before that would freeze us for ever.
 */
function killerOf(userId: number, chroot: string | undefined): Deno.Command {
  const quiet = {
    clearEnv: true,
    cwd: "/",
    stdin: "null",
    stdout: "null",
    stderr: "null",
  } as const;
  const kill = ["-c", "kill -9 -1"];
  if (chroot === undefined) {
    return new Deno.Command("/bin/sh", { ...quiet, args: kill, uid: userId, gid: userId });
  }
  const user = [`--userspec=${userId}:${userId}`, "--groups="];
  return new Deno.Command(chroot, { ...quiet, args: [...user, "/", "/bin/sh", ...kill] });
}

/** Where coreutils' `chroot` is; undefined where it is another one, which knows no users, or none. */
function chroot(): Promise<string | undefined> {
  return found ??= findChroot();
}

let found: Promise<string | undefined> | undefined;

async function findChroot(): Promise<string | undefined> {
  for (const path of ["/usr/sbin/chroot", "/usr/bin/chroot", "/sbin/chroot", "/bin/chroot"]) {
    const args = ["--userspec=0:0", "--groups=", "/", "/bin/true"];
    const output = { stdin: "null", stdout: "null", stderr: "null" } as const;
    const works = await new Deno.Command(path, { args, clearEnv: true, cwd: "/", ...output })
      .output().then(({ success }) => success, () => false);
    if (works) return path;
  }
  return undefined;
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
