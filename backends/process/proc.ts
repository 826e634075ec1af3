/** What /proc tells of one process. */
export interface ProcessStat {
  readonly pid: number;
  /** One letter: `Z` and `X` are dead. */
  readonly state: string;
  readonly session: number;
  /** Clock ticks since boot; together with the pid and the boot it names a process for ever. */
  readonly startTime: string;
}

/** Names one process for ever. */
export interface ProcessRef {
  readonly pid: number;
  readonly startTime: string;
}

/** Reads a line of `/proc/<pid>/stat`; undefined for anything else. The name in it may hold blanks. */
export function parseStat(text: string): ProcessStat | undefined {
  const pid = Number(/^([0-9]+) \(/.exec(text)?.[1]);
  const fields = text.slice(text.lastIndexOf(")") + 2).trim().split(" ");
  const [state, session, startTime] = [fields[0], Number(fields[3]), fields[19]];
  if (!Number.isSafeInteger(pid) || state === undefined || !Number.isSafeInteger(session)) return;
  if (startTime === undefined || !/^[0-9]+$/.test(startTime)) return;
  return { pid, state, session, startTime };
}

/** The process with that pid now, or undefined. */
export async function readStat(pid: number): Promise<ProcessStat | undefined> {
  const text = await readProc(`/proc/${pid}/stat`);
  return text === undefined ? undefined : parseStat(text);
}

/** True while exactly this process runs; a zombie does not. */
export async function isAlive(ref: ProcessRef): Promise<boolean> {
  const stat = await readStat(ref.pid);
  return stat !== undefined && stat.startTime === ref.startTime && !isDead(stat);
}

/** True for zombies and the like. */
export function isDead({ state }: ProcessStat): boolean {
  return state === "Z" || state === "X" || state === "x";
}

/** Every process there is. */
export async function listProcesses(): Promise<ProcessStat[]> {
  const pids: number[] = [];
  for await (const { name } of Deno.readDir("/proc")) {
    if (/^[0-9]+$/.test(name)) pids.push(Number(name));
  }
  const stats = await Promise.all(pids.map(readStat));
  return stats.filter((stat) => stat !== undefined);
}

/** The user that a process runs as; undefined when it is gone. */
export async function ownerOf(pid: number): Promise<number | undefined> {
  try {
    return (await Deno.stat(`/proc/${pid}`)).uid ?? undefined;
  } catch {
    return undefined;
  }
}

/** True if the process was started with one of these `NAME=value` settings; false if not readable. */
export async function startedWith(pid: number, settings: readonly string[]): Promise<boolean> {
  const text = await readProc(`/proc/${pid}/environ`);
  return text !== undefined && text.split("\0").some((setting) => settings.includes(setting));
}

/** Identifies this boot of the machine: pids and start times mean nothing after the next one. */
export async function bootId(): Promise<string> {
  return (await Deno.readTextFile("/proc/sys/kernel/random/boot_id")).trim();
}

/** This process. */
export async function self(): Promise<ProcessRef> {
  const stat = await readStat(Deno.pid);
  if (stat === undefined) {
    throw new Error("Cannot read /proc/self/stat: process executors need Linux with /proc mounted");
  }
  return { pid: stat.pid, startTime: stat.startTime };
}

/** Sends a signal; a process (or, for a negative pid, a group) that is gone is fine. */
export function signalProcess(pid: number, signal: Deno.Signal): void {
  try {
    Deno.kill(pid, signal);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (!(error instanceof Deno.errors.NotFound) && code !== "ESRCH") throw error;
  }
}

async function readProc(path: string): Promise<string | undefined> {
  try {
    return await Deno.readTextFile(path);
  } catch {
    // Gone, or not ours to read: the same for the caller.
    return undefined;
  }
}
