import type { Container } from "../support/container.ts";
import type { Entry } from "./kubelet_status.ts";

/** A Pod of this node, as the kubelet has it. */
export interface NodePod {
  readonly uid: string;
  /** Of its first container. */
  readonly containerId: string;
  readonly name: string;
  readonly namespace: string;
  readonly ip: string;
  /** When its containers were started, ms since the epoch; null before that. */
  readonly startedAt: number | null;
  /** What the container has printed. */
  log(container?: string): Promise<string>;
  /** Live processes of the container. */
  processes(container?: string): Promise<number[]>;
  /** The container's first process. */
  pid(container?: string): number;
  /** When the container ended before it was started again, ms since the epoch; null when it never did. */
  endedAt(container?: string): number | null;
}

/** The {@link NodePod} of an entry. Its methods throw for a container that does not run. */
export function nodePod(entry: Entry): NodePod {
  return {
    uid: entry.uid,
    containerId: entry.containers[0]?.containerId ?? "",
    name: entry.name,
    namespace: entry.namespace,
    ip: entry.ip,
    startedAt: entry.startedAt,
    log: async (name = "executor") => await Deno.readTextFile(containerOf(entry, name).logFile),
    processes: async (name = "executor") => await containerOf(entry, name).processes(),
    pid: (name = "executor") => containerOf(entry, name).pid,
    endedAt: (name = "executor") =>
      entry.containers.find((one) => one.name === name)?.endedAt ?? null,
  };
}

/** The container of that name. Throws when it does not run. */
export function containerOf(entry: Entry, name: string): Container {
  const found = entry.containers.find((one) => one.name === name)?.container;
  if (found === null || found === undefined) {
    throw new Error(`The container "${name}" of "${entry.name}" does not run`);
  }
  return found;
}
