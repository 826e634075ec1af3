import { createBackgroundTasks } from "../support/background_tasks.ts";
import { startContainer } from "../support/container.ts";
import type { Image } from "../support/container_image.ts";
import type { KubeAccess } from "../support/kube_access.ts";
import type { KubeClient, KubeObject } from "../support/kube_client.ts";
import { at } from "../support/kube_manifests.ts";
import {
  type ContainerEnd,
  containerOptions,
  podFolder,
  terminated,
  waitingContainers,
} from "./kubelet_containers.ts";
import { type Entry, type Running, statusOf } from "./kubelet_status.ts";
import { disruption, ifConflict, ifGone, iso } from "./kubelet_words.ts";
import { containerOf, type NodePod, nodePod } from "./node_pod.ts";
import { makeVolumes } from "./pod_volumes.ts";

/** What a test makes of a Pod in place of starting it. */
export type Hold =
  /** No node has room for it. */
  | { readonly kind: "unschedulable"; readonly message: string }
  /** Its image cannot be pulled. */
  | { readonly kind: "image_pull" }
  /** Bound, and its containers are being made for ever. */
  | { readonly kind: "creating" };

/** Options of {@link startKubelet}. */
export interface KubeletOptions {
  readonly access: KubeAccess;
  readonly client: KubeClient;
  /** The script of the peers folder that puts a command into a Pod's cgroup. */
  readonly inpod: string;
  /** Where Pods keep their volumes and logs. */
  readonly folder: string;
  /** Folder with the Workload API's socket, for Pods. */
  readonly workloadApi: string;
  readonly images: ReadonlyMap<string, Image>;
  readonly node: string;
  /** Address number `n` of this run, on loopback. */
  podIp(n: number): string;
  readonly say: (line: string) => void;
}

/**
 * Scheduler and kubelet of one node. It binds Pods, starts exactly what their spec says in their
 * cgroups, reports what becomes of it, and ends it when it is deleted; the rest does the test.
 */
export interface Kubelet extends AsyncDisposable {
  /** Asked for each Pod before it is bound and before it is started; undefined = it is run. */
  hold(pod: KubeObject): Hold | undefined;
  /** Sets {@link hold} and looks at every Pod that waits again. */
  holdBy(rule: (pod: KubeObject) => Hold | undefined): void;
  pods(): readonly NodePod[];
  pod(name: string): NodePod | undefined;
  /** What the container of a Pod that is or was on this node has printed; empty when it never ran. */
  logOf(pod: Pick<NodePod, "name" | "uid">, container: string): Promise<string>;
  /** The kernel's OOM killer takes a container: SIGKILL, reported as `OOMKilled`. */
  killForMemory(name: string, container?: string): Promise<void>;
  /** Its first container is reported to have ended like this, without having run. */
  failed(name: string, reason: string, exitCode: number): Promise<void>;
  /** The node runs short: containers get SIGTERM, then SIGKILL, and the Pod is `Failed`, `Evicted`. */
  evict(name: string): Promise<void>;
  /** The node is shut down in an orderly way, with so much time for Pods. */
  shutdown(name: string, graceSeconds: number): Promise<void>;
  /** The node is gone: its processes are, and nobody reports anything of this Pod again. */
  vanish(name: string): Promise<void>;
}

/** Starts the kubelet and its read-only `/pods`, which SPIRE's k8s attestor asks. */
export async function startKubelet(options: KubeletOptions): Promise<Kubelet> {
  const { access, client, node, say } = options;
  const entries = new Map<string, Entry>();
  const stop = new AbortController();
  const tasks = createBackgroundTasks((error) => say(`kubelet: ${error}`));
  let addresses = 0;
  let rule: (pod: KubeObject) => Hold | undefined = () => undefined;

  await client.call("POST", "/api/v1/nodes", {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: node },
  }).catch(ifConflict);

  const path = (entry: Entry) => `/api/v1/namespaces/${entry.namespace}/pods/${entry.name}`;
  const report = async (entry: Entry) => {
    if (entry.silent) return;
    const body = { metadata: { uid: entry.uid }, status: statusOf(entry) };
    await client.call("PATCH", `${path(entry)}/status`, body).catch(ifGone);
  };
  const queue = (entry: Entry, what: () => Promise<void>) => {
    entry.work = entry.work.then(what).catch((error) => say(`kubelet: ${entry.name}: ${error}`));
    tasks.add(entry.work);
  };

  const bind = async (entry: Entry) => {
    const hold = kubelet.hold(entry.object);
    if (hold?.kind === "unschedulable") {
      const condition = { type: "PodScheduled", status: "False", reason: "Unschedulable" };
      await client.call("PATCH", `${path(entry)}/status`, {
        metadata: { uid: entry.uid },
        status: { conditions: [{ ...condition, message: hold.message }] },
      }).catch(ifGone);
      return;
    }
    await client.call("POST", `${path(entry)}/binding`, {
      apiVersion: "v1",
      kind: "Binding",
      metadata: { name: entry.name, uid: entry.uid },
      target: { apiVersion: "v1", kind: "Node", name: node },
    }).catch(ifConflict);
  };

  const startOne = async (entry: Entry, one: Running, volumes: ReadonlyMap<string, string>) => {
    const container = await startContainer(
      await containerOptions({ entry, one, volumes }, options),
    );
    const startedAt = iso(Date.now());
    one.container = container;
    one.reason = null;
    if ("terminated" in one.state) one.lastState = one.state;
    one.state = { running: { startedAt } };
    tasks.add(container.exited.then((exitCode) => {
      one.endedAt = Date.now();
      queue(entry, async () => {
        await ended(entry, one, { exitCode, startedAt });
        const again = at(entry.object, "spec", "restartPolicy") !== "Never";
        if (!again || entry.ending || entry.fate !== null || stop.signal.aborted) return;
        // As a kubelet backs off, only sooner.
        await new Promise((resolve) => setTimeout(resolve, Math.min(200 << one.restarts, 10_000)));
        if (entry.ending) return;
        one.restarts++;
        await startOne(entry, one, volumes);
        await report(entry);
      });
    }));
  };

  const ended = async (entry: Entry, one: Running, how: ContainerEnd) => {
    one.state = await terminated(one, how);
    await one.container?.kill();
    const all = entry.containers.every((each) => "terminated" in each.state);
    if (all && at(entry.object, "spec", "restartPolicy") === "Never") {
      const good = entry.containers.every((each) => at(each.state, "terminated", "exitCode") === 0);
      entry.phase = good && entry.fate === null ? "Succeeded" : "Failed";
    }
    await report(entry);
  };

  const start = async (entry: Entry) => {
    if (entry.ending) return;
    const { object } = entry;
    entry.containers = waitingContainers(entry);
    const unknown = entry.containers.find((one) =>
      !options.images.has(String(at(one.spec, "image")))
    );
    const hold = kubelet.hold(object);
    entry.held = hold !== undefined;
    if (hold?.kind === "creating") return await report(entry);
    if (hold?.kind === "image_pull" || unknown !== undefined) {
      for (const one of entry.containers) {
        const message = `Back-off pulling image "${at(one.spec, "image")}"`;
        one.state = { waiting: { reason: "ImagePullBackOff", message } };
      }
      return await report(entry);
    }
    const volumes = await makeVolumes(object, podFolder(options, entry), options);
    entry.startedAt = Date.now();
    entry.phase = "Running";
    for (const one of entry.containers) await startOne(entry, one, volumes);
    await report(entry);
  };

  /** SIGTERM to all, SIGKILL when the time is over; resolves when none is left and that was reported. */
  const end = async (entry: Entry, graceSeconds: number) => {
    entry.ending = true;
    const live = entry.containers.flatMap((one) =>
      one.container !== null && "running" in one.state ? [one.container] : []
    );
    for (const container of live) await container.terminate();
    const timer = setTimeout(() => {
      for (const container of live) tasks.add(container.kill());
    }, graceSeconds * 1000);
    await Promise.all(live.map((container) => container.exited));
    clearTimeout(timer);
    await settled(entry);
  };
  /** Everything queued for the Pod so far, and what that queues, is done. */
  const settled = async (entry: Entry) => {
    let work: Promise<unknown> | undefined;
    while (work !== entry.work) {
      work = entry.work;
      await work;
    }
  };
  const remove = async (entry: Entry) => {
    const grace = at(entry.object, "metadata", "deletionGracePeriodSeconds");
    await end(entry, typeof grace === "number" ? grace : 30);
    if (entry.silent) return;
    await client.call("DELETE", path(entry), {
      gracePeriodSeconds: 0,
      preconditions: { uid: entry.uid },
    }).catch(ifGone);
  };

  const see = (object: KubeObject) => {
    const uid = String(at(object, "metadata", "uid"));
    let entry = entries.get(uid);
    if (entry === undefined) {
      entry = {
        object,
        uid,
        name: String(at(object, "metadata", "name")),
        namespace: String(at(object, "metadata", "namespace")),
        ip: options.podIp(addresses++),
        containers: [],
        startedAt: null,
        phase: "Pending",
        fate: null,
        ending: false,
        silent: false,
        work: Promise.resolve(),
        begun: false,
        held: false,
      };
      entries.set(uid, entry);
    }
    const one = entry;
    one.object = object;
    if (one.silent) return;
    if (at(object, "metadata", "deletionTimestamp") !== undefined) {
      if (!one.ending) {
        one.ending = true;
        tasks.add(remove(one));
      }
      return;
    }
    const bound = at(object, "spec", "nodeName");
    const key = bound === undefined ? "bind" : "start";
    if (key === "start" && bound === node && !one.begun) {
      one.begun = true;
      queue(one, () => start(one));
    } else if (key === "bind" && at(object, "status", "conditions") === undefined) {
      queue(one, () => bind(one));
    }
  };
  const forget = (object: KubeObject) => {
    const uid = String(at(object, "metadata", "uid"));
    const entry = entries.get(uid);
    entries.delete(uid);
    // Deleted by force: the kubelet ends what it finds running.
    for (const { container } of entry?.containers ?? []) {
      if (container !== null) tasks.add(container.kill());
    }
  };

  const find = (name: string): Entry => {
    const found = [...entries.values()].find((one) => one.name === name);
    if (found === undefined) throw new Error(`No Pod "${name}" on the node`);
    return found;
  };
  const kubelet: Kubelet = {
    hold: (pod) => rule(pod),
    holdBy(next) {
      rule = next;
      for (const entry of entries.values()) {
        if (entry.ending || entry.fate !== null) continue;
        if (entry.held && kubelet.hold(entry.object) === undefined) {
          queue(entry, () => start(entry));
        } else if (!entry.begun) queue(entry, () => bind(entry));
      }
    },
    pods: () => [...entries.values()].map(nodePod),
    pod(name) {
      const found = [...entries.values()].find((one) => one.name === name);
      return found === undefined ? undefined : nodePod(found);
    },
    logOf: (pod, container) =>
      Deno.readTextFile(`${podFolder(options, pod)}/${container}.log`).catch(() => ""),
    async killForMemory(name, container = "executor") {
      const entry = find(name);
      for (const one of entry.containers) if (one.name === container) one.reason = "OOMKilled";
      await containerOf(entry, container).kill();
      await settled(entry);
    },
    async failed(name, reason, exitCode) {
      const entry = find(name);
      const [one] = entry.containers;
      if (one === undefined) throw new Error(`"${name}" has no container yet`);
      const now = iso(Date.now());
      one.state = { terminated: { exitCode, reason, startedAt: now, finishedAt: now } };
      entry.phase = "Failed";
      entry.held = false;
      await report(entry);
    },
    async evict(name) {
      const entry = find(name);
      entry.fate = {
        reason: "Evicted",
        message: "The node was low on resource: memory.",
        condition: disruption("TerminationByKubelet", "The node was low on resource: memory."),
      };
      await end(entry, 10);
      entry.phase = "Failed";
      await report(entry);
    },
    async shutdown(name, graceSeconds) {
      const entry = find(name);
      const message = "Pod was terminated in response to imminent node shutdown.";
      entry.fate = {
        reason: "Terminated",
        message,
        condition: disruption("TerminationByKubelet", message),
      };
      await end(entry, graceSeconds);
      entry.phase = "Failed";
      await report(entry);
    },
    async vanish(name) {
      const entry = find(name);
      entry.silent = true;
      entry.ending = true;
      for (const { container } of entry.containers) await container?.kill();
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      for (const entry of entries.values()) {
        entry.ending = true;
        entry.silent = true;
        for (const { container } of entry.containers) await container?.kill();
      }
      await tasks.ended();
      await server.shutdown();
    },
  };

  const server = Deno.serve({
    hostname: "127.0.0.1",
    port: access.kubeletPort,
    onListen: () => {},
  }, (request) => {
    if (new URL(request.url).pathname !== "/pods") return new Response("no", { status: 404 });
    const items = [...entries.values()].filter((entry) => !entry.silent).map((entry) => ({
      ...entry.object,
      status: entry.begun ? statusOf(entry) : entry.object.status,
    }));
    return Response.json({ kind: "PodList", apiVersion: "v1", items });
  });
  tasks.add((async () => {
    for await (const { kind, object } of client.watch("/api/v1/pods", stop.signal)) {
      if (kind === "DELETED") forget(object);
      else see(object);
    }
  })());
  return kubelet;
}
