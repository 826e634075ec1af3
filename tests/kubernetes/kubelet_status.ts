import type { Container } from "../support/container.ts";
import type { KubeObject } from "../support/kube_client.ts";
import { at } from "../support/kube_manifests.ts";
import { iso } from "./kubelet_words.ts";

/** A container of a Pod on the node. */
export interface Running {
  readonly spec: unknown;
  readonly name: string;
  readonly containerId: string;
  container: Container | null;
  restarts: number;
  /** As the API shows it. */
  state: KubeObject;
  /** How it ended before it was started again; empty before that. */
  lastState: KubeObject;
  endedAt: number | null;
  reason: string | null;
}

/** A Pod on the node, and what has become of it. */
export interface Entry {
  object: KubeObject;
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
  readonly ip: string;
  containers: Running[];
  startedAt: number | null;
  phase: "Pending" | "Running" | "Succeeded" | "Failed";
  /** Written over what the containers say: eviction, shutdown. */
  fate: { readonly reason: string; readonly message: string; readonly condition?: unknown } | null;
  ending: boolean;
  silent: boolean;
  /** What is done for this Pod, one after the other. */
  work: Promise<unknown>;
  begun: boolean;
  /** Begun, but held back by the test. */
  held: boolean;
}

/** The Pod's status as the kubelet reports it. */
export function statusOf(entry: Entry): KubeObject {
  return {
    phase: entry.phase,
    ...entry.fate === null ? {} : { reason: entry.fate.reason, message: entry.fate.message },
    hostIP: "127.0.0.1",
    podIP: entry.ip,
    podIPs: [{ ip: entry.ip }],
    ...entry.startedAt === null ? {} : { startTime: iso(entry.startedAt) },
    conditions: [
      { type: "PodScheduled", status: "True", lastTransitionTime: iso(Date.now()) },
      {
        type: "Ready",
        status: entry.phase === "Running" ? "True" : "False",
        lastTransitionTime: iso(Date.now()),
      },
      ...entry.fate?.condition === undefined ? [] : [entry.fate.condition],
    ],
    containerStatuses: entry.containers.map((one) => ({
      name: one.name,
      image: at(one.spec, "image"),
      imageID: at(one.spec, "image"),
      ready: "running" in one.state,
      started: "running" in one.state,
      restartCount: one.restarts,
      ...one.container === null ? {} : { containerID: `containerd://${one.containerId}` },
      state: one.state,
      lastState: one.lastState,
    })),
  };
}
