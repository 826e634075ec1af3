import type { Call } from "../../controller/backend.ts";
import {
  ClusterError,
  type ClusterErrorCode,
  type EntrySpec,
  type ExecutorCluster,
  type IdentityEntry,
  type Manifest,
  type NewEntry,
  type PodChange,
  type PodEvent,
} from "../../backends/pod/cluster.ts";
import { podOf, texts } from "../../backends/pod/pod.ts";
import { onAbort } from "../../lib/abortable.ts";
import { type Clock, systemClock } from "../../lib/clock.ts";
import { objectOrEmpty } from "../../lib/json_object.ts";

type Json = Readonly<Record<string, unknown>>;
/** Methods that can be made to fail. */
export type ClusterMethod = keyof ExecutorCluster;

/** Switches; set them at any time. */
export interface ClusterFaults {
  /** These methods throw this until taken out. */
  readonly failing: Map<ClusterMethod, ClusterError>;
  /** Called at the start of every method: throw, or wait, to interfere. */
  before: ((method: ClusterMethod, name: string | null, call: Call) => Promise<void>) | null;
  /** The next call of this method is done, but no answer comes. */
  loseNextAnswer: ClusterMethod | null;
  /** Pods stay as they were made: nobody schedules or starts them. */
  holdStarts: boolean;
  /** Pods that are deleted stay, terminating, unless they are given no grace at all. */
  holdDeletes: boolean;
  /** Watches tell nothing. */
  muteWatch: boolean;
}

/** A cluster in memory, with a kubelet that starts and ends everything at once. */
export interface FakeCluster extends ExecutorCluster {
  readonly faults: ClusterFaults;
  /** Pods as the API server would give them, by name. */
  readonly pods: ReadonlyMap<string, Json>;
  readonly entries: ReadonlyMap<string, IdentityEntry>;
  /** Events as they were written, oldest first. */
  readonly events: readonly (PodEvent & { readonly pod: string; readonly uid: string })[];
  /** UIDs of Nodes, by name; `node-1` is there. */
  readonly nodes: Map<string, string>;
  readonly calls: readonly { readonly method: ClusterMethod; readonly name: string | null }[];
  /** Binds the Pod to a node. */
  schedule(name: string, node?: string): void;
  /** Its containers run. */
  start(name: string): void;
  /** A container has terminated; with it the Pod, unless it has others that run. */
  terminate(
    name: string,
    how: {
      readonly exitCode: number;
      readonly reason?: string;
      readonly message?: string;
      readonly container?: string;
    },
  ): void;
  /** Writes fields of the status. */
  status(name: string, status: Json): void;
  /** Changes the whole object. */
  edit(name: string, change: (pod: Json) => Json): void;
  /** The object disappears. */
  remove(name: string): void;
  /** Puts a Pod there that this program did not make. */
  put(manifest: Manifest): void;
  /** Puts an entry there, or changes one. */
  putEntry(entry: Partial<IdentityEntry> & { readonly name: string }): void;
  /** The entry disappears. */
  removeEntry(name: string): void;
  /** Watches get everything anew, as after missed changes. */
  relist(): void;
}

/** Makes a {@link FakeCluster}. */
export function createFakeCluster(options: { readonly clock?: Clock } = {}): FakeCluster {
  const clock = options.clock ?? systemClock;
  const pods = new Map<string, Json>();
  const entries = new Map<string, IdentityEntry>();
  const events: (PodEvent & { pod: string; uid: string })[] = [];
  const nodes = new Map([["node-1", "uid-of-node-1"]]);
  const calls: { method: ClusterMethod; name: string | null }[] = [];
  const watchers = new Set<(change: PodChange | "relist") => void>();
  let sequence = 0;
  const faults: ClusterFaults = {
    failing: new Map(),
    before: null,
    loseNextAnswer: null,
    holdStarts: false,
    holdDeletes: false,
    muteWatch: false,
  };

  const metadataOf = (pod: Json | undefined) => objectOrEmpty(pod?.metadata);
  const fail = (code: ClusterErrorCode, message: string): never => {
    throw new ClusterError(code, message);
  };
  const tell = (change: PodChange | "relist") => {
    if (!faults.muteWatch) { for (const watcher of watchers) watcher(change); }
  };
  const set = (name: string, pod: Json) => {
    const metadata = { ...metadataOf(pod), resourceVersion: String(++sequence) };
    const stored = { ...pod, metadata };
    pods.set(name, stored);
    tell({ kind: "changed", pod: podOf(stored) });
  };
  const edit = (name: string, change: (pod: Json) => Json) => {
    const pod = pods.get(name);
    if (pod !== undefined) set(name, change(pod));
  };
  const remove = (name: string) => {
    const pod = podOf(pods.get(name));
    if (pods.delete(name)) tell({ kind: "removed", pod });
  };
  const status = (name: string, fields: Json) =>
    edit(name, (pod) => ({ ...pod, status: { ...objectOrEmpty(pod.status), ...fields } }));
  const containers = (pod: Json | undefined): string[] => {
    const list = objectOrEmpty(pod?.spec).containers;
    return Array.isArray(list) ? list.map((each) => String(objectOrEmpty(each).name)) : [];
  };
  const schedule = (name: string, node = "node-1") =>
    edit(name, (pod) => ({ ...pod, spec: { ...objectOrEmpty(pod.spec), nodeName: node } }));
  const start = (name: string) => {
    const running = containers(pods.get(name)).map((container) => ({
      name: container,
      ready: true,
      restartCount: 0,
      state: { running: { startedAt: new Date(clock.now()).toISOString() } },
    }));
    status(name, { phase: "Running", containerStatuses: running });
  };
  const make = (manifest: Manifest): Json => {
    const metadata = objectOrEmpty(manifest.metadata);
    const name = String(metadata.name);
    set(name, {
      ...manifest,
      metadata: {
        namespace: "executors",
        ...metadata,
        uid: `uid-${++sequence}`,
        creationTimestamp: new Date(clock.now()).toISOString(),
      },
      status: { phase: "Pending" },
    });
    return pods.get(name) ?? {};
  };

  const done = async <T>(
    method: ClusterMethod,
    name: string | null,
    call: Call,
    work: () => T,
  ): Promise<T> => {
    call.signal.throwIfAborted();
    calls.push({ method, name });
    await faults.before?.(method, name, call);
    await Promise.resolve();
    call.signal.throwIfAborted();
    const failure = faults.failing.get(method);
    if (failure !== undefined) throw failure;
    const result = work();
    if (faults.loseNextAnswer === method) {
      faults.loseNextAnswer = null;
      fail("unknown_outcome", "connection lost");
    }
    return result;
  };

  const exactly = (name: string, uid: string): Json => {
    const pod = pods.get(name) ?? fail("not_found", `pods "${name}" not found`);
    const found = metadataOf(pod).uid;
    if (found !== uid) fail("conflict", `the UID in the precondition (${uid}) is not ${found}`);
    return pod;
  };
  const matching =
    (labels: Readonly<Record<string, string>>) => (found: Readonly<Record<string, string>>) =>
      Object.entries(labels).every(([key, value]) => found[key] === value);
  const podsWith = (labels: Readonly<Record<string, string>>) =>
    [...pods.values()].map(podOf).filter((pod) => matching(labels)(pod.labels));

  return {
    faults,
    pods,
    entries,
    events,
    nodes,
    calls,
    schedule,
    start,
    status,
    edit,
    remove,
    put: make,
    relist: () => tell("relist"),
    terminate(name, { exitCode, reason, message, container = "executor" }) {
      const statuses = objectOrEmpty(pods.get(name)?.status).containerStatuses;
      const before = Array.isArray(statuses) ? statuses.map(objectOrEmpty) : [];
      const after = containers(pods.get(name)).map((each) => {
        if (each !== container) {
          return before.find((status) => status.name === each) ?? { name: each };
        }
        const why = reason ?? (exitCode === 0 ? "Completed" : "Error");
        const terminated = { exitCode, reason: why, ...(message === undefined ? {} : { message }) };
        return { name: each, ready: false, restartCount: 0, state: { terminated } };
      });
      const over = after.every((status) =>
        objectOrEmpty(objectOrEmpty(status).state).terminated !== undefined
      );
      const phase = over ? (exitCode === 0 ? "Succeeded" : "Failed") : "Running";
      status(name, { phase, containerStatuses: after });
    },
    putEntry(entry) {
      entries.set(entry.name, {
        uid: `uid-${++sequence}`,
        labels: {},
        spec: {},
        rendered: true,
        masked: false,
        ...entries.get(entry.name),
        ...entry,
      });
    },
    removeEntry: (name) => void entries.delete(name),
    listPods: (labels, call) => done("listPods", null, call, () => podsWith(labels)),
    async *watchPods(labels, { signal }) {
      const queue: (PodChange | "relist")[] = ["relist"];
      let wake = () => {};
      const watcher = (change: PodChange | "relist") => {
        queue.push(change);
        wake();
      };
      watchers.add(watcher);
      using _waking = onAbort(signal, () => wake());
      try {
        while (!signal.aborted) {
          const next = queue.shift();
          if (next === undefined) await new Promise<void>((resolve) => wake = resolve);
          else if (next === "relist") yield { kind: "all", pods: podsWith(labels) };
          else if (next.kind !== "changed" || matching(labels)(next.pod.labels)) yield next;
          else yield { kind: "removed", pod: next.pod };
        }
      } finally {
        watchers.delete(watcher);
      }
    },
    getPod: (name, call) =>
      done("getPod", name, call, () => {
        const pod = pods.get(name);
        return pod === undefined ? undefined : podOf(pod);
      }),
    createPod(manifest, call) {
      const name = String(objectOrEmpty(manifest.metadata).name);
      return done("createPod", name, call, () => {
        if (pods.has(name)) fail("already_exists", `pods "${name}" already exists`);
        const made = podOf(make(manifest));
        if (!faults.holdStarts) {
          schedule(name);
          start(name);
        }
        return made;
      });
    },
    deletePod: ({ name, uid, graceSeconds }, call) =>
      done("deletePod", name, call, () => {
        const pod = exactly(name, uid);
        const spec = objectOrEmpty(pod.spec);
        const grace = graceSeconds ?? spec.terminationGracePeriodSeconds ?? 30;
        const deletionTimestamp = new Date(clock.now()).toISOString();
        const metadata = {
          ...metadataOf(pod),
          deletionTimestamp,
          deletionGracePeriodSeconds: grace,
        };
        set(name, { ...pod, metadata });
        if (grace !== 0 && faults.holdDeletes && spec.nodeName !== undefined) {
          return podOf(pods.get(name));
        }
        remove(name);
        return undefined;
      }),
    labelPod: ({ name, uid, labels }, call) =>
      done("labelPod", name, call, () => {
        const pod = exactly(name, uid);
        const metadata = metadataOf(pod);
        set(name, {
          ...pod,
          metadata: { ...metadata, labels: { ...texts(metadata.labels), ...labels } },
        });
      }),
    listEntries: (labels, call) =>
      done("listEntries", null, call, () => {
        return [...entries.values()].filter((entry) => matching(labels)(entry.labels));
      }),
    getEntry: (name, call) => done("getEntry", name, call, () => entries.get(name)),
    createEntry: ({ name, labels, spec }: NewEntry, call) =>
      done("createEntry", name, call, () => {
        if (entries.has(name)) {
          fail("already_exists", `clusterstaticentries "${name}" already exists`);
        }
        const uid = `uid-${++sequence}`;
        const copy: EntrySpec = { ...spec };
        entries.set(name, { name, uid, labels, spec: copy, rendered: true, masked: false });
      }),
    deleteEntry: ({ name, uid }, call) =>
      done("deleteEntry", name, call, () => {
        const entry = entries.get(name) ??
          fail("not_found", `clusterstaticentries "${name}" not found`);
        if (entry.uid !== uid) fail("conflict", "the UID in the precondition is another one");
        entries.delete(name);
      }),
    nodeUid: (name, call) => done("nodeUid", name, call, () => nodes.get(name)),
    listPodEvents: ({ name, uid }, call) =>
      done("listPodEvents", name, call, () => {
        return events.filter((event) => event.pod === name && event.uid === uid)
          .map(({ type, reason, message }) => ({ type, reason, message }));
      }),
    emitPodEvent: ({ name, uid }, event, call) =>
      done("emitPodEvent", name, call, () => {
        events.push({ pod: name, uid, ...event });
      }),
  };
}
