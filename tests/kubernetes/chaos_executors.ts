import { executorName, type Instance, parseAssignmentId } from "../../controller/model/ids.ts";
import { objectOrEmpty } from "../../lib/json_object.ts";
import { some } from "../chaos/faults.ts";
import type { Random } from "../chaos/random.ts";
import type { PodParts } from "../chaos/world.ts";
import { eventually } from "../support/eventually.ts";
import type { KubeObject } from "../support/kube_client.ts";
import { at } from "../support/kube_manifests.ts";
import type { NodePod } from "./node_pod.ts";
import { type Stage, userOf } from "./stage.ts";

/** Executors of one instance, as node and API server know them. */
export interface ChaosExecutors extends PodParts {
  /** Some whose gate runs. */
  choose(count: number, random: Random): Promise<NodePod[]>;
  /** Of these, the assignments of those that may have been given their task before they ended. */
  afterTheirEnd(pods: readonly NodePod[]): Promise<string[]>;
  /** Names of the identity entries of executors that have their SVID. */
  used(): Promise<string[]>;
  /** Labels that this instance's objects have. */
  readonly selector: string;
}

const PREFIX = "ci.ddupan.top";
const ENTRIES = "/apis/spire.spiffe.io/v1alpha1/clusterstaticentries";
/** SIGTERM and what a busy API server takes. */
const END_MS = 60_000;

/** Looks at the Pods of that instance; nothing here asks the controller. */
export function createChaosExecutors(
  { cluster, installation, audit }: Stage,
  instance: Instance,
): ChaosExecutors {
  const { client, kubelet, peers } = cluster;
  const namespace = installation.executors;
  const folder = `${peers.folder}/pods`;
  const ours = `ci-${instance}-`;
  const selector = encodeURIComponent(`${PREFIX}/runner=true,${PREFIX}/instance=${instance}`);
  const user = userOf(installation.controller, "controller");
  const assignmentOf = (name: string) => `gitea-task-${name.slice(ours.length)}`;
  const complained = new Set<string>();

  const phases = async (place: string): Promise<Line[]> => {
    const text = await Deno.readTextFile(`${folder}/${place}/executor.log`).catch(() => "");
    return text.split("\n").flatMap(lineOf);
  };
  /** Every Pod that was ever started under that name. */
  const places = async (name: string): Promise<string[]> => {
    const found: string[] = [];
    for await (const entry of Deno.readDir(folder)) {
      if (entry.name.startsWith(`${name}-`) && entry.name.length === name.length + 37) {
        found.push(entry.name);
      }
    }
    return found;
  };
  const handedAt = async (name: string): Promise<number[]> => {
    const all = await Promise.all((await places(name)).map(phases));
    return all.flatMap((lines) => lines.find(({ phase }) => phase === "holding")?.at ?? []);
  };
  const listed = async (path: string): Promise<readonly KubeObject[]> => {
    const { items } = await client.call("GET", `${path}?labelSelector=${selector}`);
    return Array.isArray(items) ? items.map(objectOrEmpty) : [];
  };
  const names = async (path: string) =>
    (await listed(path)).map((one) => String(at(one, "metadata", "name")));

  const executors: ChaosExecutors = {
    selector,
    async used() {
      const found: string[] = [];
      for (const name of await names(ENTRIES)) {
        const all = await Promise.all((await places(name)).map(phases));
        if (all.flat().some(({ phase }) => phase === "asking")) found.push(name);
      }
      return found;
    },
    async choose(count, random) {
      const running: NodePod[] = [];
      for (const pod of kubelet.pods()) {
        if (!pod.name.startsWith(ours)) continue;
        const said = await phases(`${pod.name}-${pod.uid}`);
        if (said.length > 0 && said.at(-1)?.phase !== "end") running.push(pod);
      }
      return some(running, count, random);
    },
    async afterTheirEnd(pods) {
      const given: string[] = [];
      for (const pod of pods) {
        const ended = await eventually(async () => (await processesOf(pod)).length === 0, {
          what: `the end of "${pod.name}"`,
          timeoutMs: END_MS,
          everyMs: 20,
        }).then(() => true, () => false);
        const said = await phases(`${pod.name}-${pod.uid}`);
        if (!ended || said.some(({ phase }) => phase === "asking" || phase === "holding")) {
          given.push(assignmentOf(pod.name));
        }
      }
      return given;
    },
    async handed(assignment) {
      const id = parseAssignmentId(assignment);
      return id === undefined ? 0 : (await handedAt(executorName(instance, id))).length;
    },
    async kill(who, { count, random }) {
      const victims = await executors.choose(count, random);
      for (const { name } of victims) {
        if (who === "runner") await signal(kubelet.pod(name), "SIGUSR1");
        else if (random.next() < 0.5) await kubelet.killForMemory(name).catch(() => {});
        else await signal(kubelet.pod(name), "SIGKILL");
      }
      const killed = await executors.afterTheirEnd(victims);
      return { note: victims.map(({ name }) => name).join(", "), killed };
    },
    async left() {
      const [pods, entries] = await Promise.all([
        names(`/api/v1/namespaces/${namespace}/pods`),
        names(ENTRIES),
      ]);
      const parts = [
        ...pods.length === 0 ? [] : [`the Pods ${pods.join(", ")}`],
        ...entries.length === 0 ? [] : [`the identity entries ${entries.join(", ")}`],
      ];
      return parts.join(" and ");
    },
    async complaints() {
      const made = (await audit.records()).filter((one) =>
        one.user === user && one.verb === "create" && one.resource === "pods" &&
        one.namespace === namespace && one.code === 201 && one.name.startsWith(ours)
      );
      const complaints: string[] = [];
      for (const name of new Set(made.map((one) => one.name))) {
        const [first] = await handedAt(name);
        if (first === undefined || complained.has(name)) continue;
        const later = made.filter((one) => one.name === name && one.at > first);
        if (later.length === 0) continue;
        complained.add(name);
        complaints.push(
          `doubled: ${later.length} more Pods "${name}" were made when one had the task, the first ${
            (later[0]?.at ?? 0) - first
          } ms after it`,
        );
      }
      return complaints;
    },
  };
  return executors;
}

interface Line {
  readonly at: number;
  readonly phase: string;
}

function lineOf(text: string): Line[] {
  try {
    const { at, phase } = objectOrEmpty(JSON.parse(text));
    return typeof at === "number" && typeof phase === "string" ? [{ at, phase }] : [];
  } catch {
    return []; // Deno's own words, or a line that a kill has cut off.
  }
}

/** None when its container was never made. */
async function processesOf(pod: NodePod): Promise<number[]> {
  return await pod.processes().catch(() => []);
}

async function signal(pod: NodePod | undefined, name: Deno.Signal): Promise<void> {
  for (const pid of pod === undefined ? [] : await processesOf(pod)) {
    try {
      Deno.kill(pid, name);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  }
}
