import { holdsSecret } from "../support/find_secret.ts";

/** Where a secret stands in the environment or the command line of the machine's processes. */
export interface Environments {
  /** How many processes could be looked at. */
  readonly looked: number;
  /** How many have it that are a runner, or were started below one. */
  readonly inside: number;
  /** `pid name` of every other one that has it. */
  readonly outside: readonly string[];
}

interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly name: string;
  readonly holds: boolean;
}

/** Looks through `/proc` for `secret`, as it is or packed. Needs root to see other users' processes. */
export async function environmentsWith(secret: string): Promise<Environments> {
  const processes = new Map<number, Process>();
  for await (const { name } of Deno.readDir("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    const one = await look(pid, secret);
    if (one !== undefined) processes.set(pid, one);
  }
  const holding = [...processes.values()].filter((one) => one.holds);
  const inside = holding.filter((one) => isBelowRunner(one, processes));
  const outside = holding.filter((one) => !inside.includes(one))
    .map((one) => `${one.pid} ${one.name}`);
  return { looked: processes.size, inside: inside.length, outside };
}

function isBelowRunner(process: Process, all: ReadonlyMap<number, Process>): boolean {
  for (let one: Process | undefined = process; one !== undefined; one = all.get(one.parent)) {
    // The kernel cuts a name at 15 bytes.
    if (one.name === "gitea-runner") return true;
  }
  return false;
}

/** Undefined when the process ended meanwhile or has no environment, as the kernel's own. */
async function look(pid: number, secret: string): Promise<Process | undefined> {
  try {
    const environment = await Deno.readFile(`/proc/${pid}/environ`);
    const commandLine = await Deno.readFile(`/proc/${pid}/cmdline`);
    const status = await Deno.readTextFile(`/proc/${pid}/status`);
    return {
      pid,
      parent: Number(/^PPid:\s*(\d+)$/m.exec(status)?.[1] ?? 0),
      name: /^Name:\s*(.*)$/m.exec(status)?.[1] ?? "",
      holds: holdsSecret(environment, secret) || holdsSecret(commandLine, secret),
    };
  } catch {
    return undefined;
  }
}
