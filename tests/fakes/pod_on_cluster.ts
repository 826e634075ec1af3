import { createPatience, DEFAULT_PATIENCE } from "../../backends/pod/patience.ts";
import { podOf } from "../../backends/pod/pod.ts";
import { createPodBackend } from "../../backends/pod/pod_backend.ts";
import { executorOf } from "../../backends/pod/status.ts";
import {
  type Backend,
  BackendError,
  type Call,
  type Executor,
  type ExecutorChange,
} from "../../controller/backend.ts";
import type { ExecutorName, Instance } from "../../controller/model/ids.ts";
import { metadataKeys } from "../../controller/model/metadata.ts";
import type { Clock } from "../../lib/clock.ts";
import { objectOrEmpty } from "../../lib/json_object.ts";
import { silentLogger } from "../../lib/logger.ts";
import { containerEnvironment } from "../support/executor_pod.ts";
import type { FakeBackend, FakeFaults, FakeMethod } from "./backend.ts";
import { createFakeCluster, type FakeCluster } from "./cluster.ts";
import { POD_SETTINGS } from "../support/pod_settings.ts";

/** What {@link createPodOnCluster} is made of. */
export interface PodOnClusterOptions {
  readonly clock: Clock;
  readonly instance: Instance;
  /** `METADATA_PREFIX`. */
  readonly prefix: string;
}

/** What outlives a backend object. */
interface Shared {
  readonly cluster: FakeCluster;
  readonly calls: { method: FakeMethod; name: ExecutorName | null }[];
  peak: number;
}

/**
 * The Pod backend on a cluster in memory, with the switches of the backend in memory: whatever is tested
 * with that one can be tested with this one.
 */
export function createPodOnCluster(options: PodOnClusterOptions): FakeBackend {
  return open(options, {
    cluster: createFakeCluster({ clock: options.clock }),
    calls: [],
    peak: 0,
  });
}

function open(options: PodOnClusterOptions, shared: Shared): FakeBackend {
  const { clock, instance, prefix } = options;
  const { cluster } = shared;
  const keys = metadataKeys(prefix).labels;
  const faults: FakeFaults = {
    failing: new Map(),
    before: null,
    loseNextAnswer: false,
    withholdTarget: false,
    holdDeletes: false,
    muteWatch: false,
  };
  const inner = createPodBackend({
    cluster,
    pods: POD_SETTINGS,
    identity: {
      instance,
      prefix,
      className: "test",
      agentId: "spiffe://test.example/node/{nodeUID}",
    },
    clock,
    logger: silentLogger,
    guard() {},
  });
  const patience = createPatience(clock, DEFAULT_PATIENCE);
  const seen = (): Map<ExecutorName, Executor> => {
    const found = [...cluster.pods.values()].map(podOf)
      .filter(({ labels }) => labels[keys.runner] === "true")
      .map((pod) =>
        executorOf(pod, { prefix, needsNode: true, warning: null, ...patience.judge(pod) })
      );
    return new Map(found.map((executor) => [executor.name, executor]));
  };

  const begin = async <T>(
    method: FakeMethod,
    name: ExecutorName | null,
    call: Call,
    work: () => Promise<T>,
  ): Promise<T> => {
    call.signal.throwIfAborted();
    shared.calls.push({ method, name });
    await faults.before?.(method, name, call);
    call.signal.throwIfAborted();
    const code = faults.failing.get(method);
    if (code !== undefined) throw new BackendError(code, `Do ${method}: the test wants ${code}`);
    cluster.faults.holdStarts = faults.withholdTarget;
    cluster.faults.holdDeletes = faults.holdDeletes;
    try {
      return await work();
    } finally {
      const running = [...seen().values()].filter(({ ended }) => ended === null).length;
      shared.peak = Math.max(shared.peak, running);
    }
  };
  const metadataOf = (pod: Readonly<Record<string, unknown>>) => objectOrEmpty(pod.metadata);

  const told: ExecutorChange[] = [];
  const backend: Backend = {
    name: "pod",
    find: (name, call) => begin("find", name, call, () => inner.find(name, call)),
    create: (spec, call) =>
      begin("create", spec.name, call, async () => {
        if (faults.loseNextAnswer) cluster.faults.loseNextAnswer = "createPod";
        faults.loseNextAnswer = false;
        const made = await inner.create(spec, call);
        // The cluster in memory has bound it to its node by now.
        return seen().get(spec.name) ?? made;
      }),
    bindIdentity: (executor, assignment, call) =>
      begin("bindIdentity", executor.name, call, () => {
        return inner.bindIdentity(executor, assignment, call);
      }),
    markTerminal: (executor, call) =>
      begin("markTerminal", executor.name, call, () => inner.markTerminal(executor, call)),
    list: (call) => begin("list", null, call, () => inner.list(call)),
    async *watch(call) {
      for await (const change of inner.watch(call)) {
        if (!faults.muteWatch) yield change;
        yield* told.splice(0);
      }
    },
    delete: (executor, call) =>
      begin("delete", executor.name, call, () => inner.delete(executor, call)),
  };
  return {
    ...backend,
    faults,
    calls: shared.calls,
    get peak() {
      return shared.peak;
    },
    get executors() {
      return seen();
    },
    get bound() {
      const entries = [...cluster.entries.values()];
      return new Map(
        entries.map(({ name, spec }) => [name as ExecutorName, spec.spiffeID ?? ""]),
      );
    },
    get environments() {
      const pods = [...cluster.pods];
      return new Map(pods.map(([name, pod]) => [name as ExecutorName, containerEnvironment(pod)]));
    },
    end(name, { exitCode = 1, lastLines = [] } = {}) {
      cluster.terminate(name, { exitCode: exitCode ?? 1, message: lastLines.join("\n") });
    },
    vanish: (name) => cluster.remove(name),
    tell(news) {
      told.push(news);
      cluster.edit(news.name, (pod) => pod);
    },
    giveTarget(name) {
      cluster.schedule(name);
      cluster.start(name);
    },
    unbind: cluster.removeEntry,
    corrupt: (name) =>
      cluster.edit(name, (pod) => ({
        ...pod,
        metadata: { ...metadataOf(pod), labels: { [keys.runner]: "true" }, annotations: {} },
      })),
    put({ name, uid, metadata, ended, terminating }) {
      const labels = { ...metadata.labels, [keys.runner]: "true" };
      cluster.put({
        metadata: { name, labels, annotations: metadata.annotations },
        spec: { containers: [{ name: "executor" }] },
      });
      cluster.edit(name, (pod) => ({ ...pod, metadata: { ...metadataOf(pod), uid } }));
      cluster.schedule(name);
      cluster.start(name);
      if (ended !== null) cluster.terminate(name, { exitCode: ended.exitCode ?? 1 });
      if (terminating) {
        const deletionTimestamp = new Date(clock.now()).toISOString();
        cluster.edit(name, (pod) => ({
          ...pod,
          metadata: { ...metadataOf(pod), deletionTimestamp, deletionGracePeriodSeconds: 30 },
        }));
      }
    },
    reopen: () => open(options, shared),
  };
}
