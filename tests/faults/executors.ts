import { listProcesses, signalProcess } from "../../backends/process/proc.ts";
import { eventually } from "../support/eventually.ts";

/** One executor, found in its folder and in the process table. */
export interface FoundExecutor {
  readonly name: string;
  readonly folder: string;
  /** Its identity gate. */
  readonly gate: number;
  /** Leader of its session: signals to `-leader` reach what a container's end would. */
  readonly leader: number;
}

/** Executors of a controller below its runtime folder. */
export async function findExecutors(runtimeDir: string): Promise<FoundExecutor[]> {
  const root = `${runtimeDir}/pod`;
  const found: FoundExecutor[] = [];
  for (const name of await executorFolders(runtimeDir)) {
    const folder = `${root}/${name}`;
    const main = await Deno.readTextFile(`${folder}/main`).catch(() => "");
    const gate = Number(main.split(" ")[0]);
    const leader = (await listProcesses()).find(({ pid }) => pid === gate)?.session;
    if (gate > 0 && leader !== undefined) found.push({ name, folder, gate, leader });
  }
  return found;
}

/** Names of the executors' folders. */
export async function executorFolders(runtimeDir: string): Promise<string[]> {
  const names: string[] = [];
  try {
    for await (const { name, isDirectory } of Deno.readDir(`${runtimeDir}/pod`)) {
      if (isDirectory && !name.startsWith(".")) names.push(name);
    }
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  return names;
}

/** Waits for the one executor there is. */
export function theExecutor(runtimeDir: string): Promise<FoundExecutor> {
  return eventually(async () => {
    const [first, ...others] = await findExecutors(runtimeDir);
    if (others.length > 0) throw new Error(`There are ${others.length + 1} executors`);
    return first;
  }, { what: "one executor", timeoutMs: 20_000, everyMs: 10 });
}

/** The runner below a gate: its child that is told to be a daemon. */
export function runnerOf({ leader, gate }: FoundExecutor): Promise<number> {
  return eventually(async () => {
    for (const stat of await listProcesses()) {
      if (stat.pid === leader || stat.pid === gate) continue;
      const parent = await parentOf(stat.pid);
      const command = await Deno.readTextFile(`/proc/${stat.pid}/cmdline`).catch(() => "");
      if (parent === gate && command.split("\0").includes("daemon")) return stat.pid;
    }
    return undefined;
  }, { what: "the runner below the gate", timeoutMs: 10_000 });
}

/** Kills every process of an executor at once, as the end of its container would. */
export async function killExecutor({ leader, folder }: FoundExecutor): Promise<void> {
  signalProcess(-leader, "SIGKILL");
  for (const { pid, session } of await listProcesses()) {
    const environment = await Deno.readTextFile(`/proc/${pid}/environ`).catch(() => "");
    if (session === leader || environment.includes(`HOME=${folder}/`)) {
      signalProcess(pid, "SIGKILL");
    }
  }
}

async function parentOf(pid: number): Promise<number | undefined> {
  const text = await Deno.readTextFile(`/proc/${pid}/stat`).catch(() => "");
  const parent = text.slice(text.lastIndexOf(")") + 2).split(" ")[1];
  return parent === undefined ? undefined : Number(parent);
}
