import {
  type Backend,
  BackendError,
  type Call,
  type Executor,
  type ExecutorChange,
} from "../../controller/backend.ts";
import type { ExecutorName } from "../../controller/model/ids.ts";
import { metadataKeys } from "../../controller/model/metadata.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/logger.ts";
import { ClusterError, type ExecutorCluster, type IdentityEntry } from "./cluster.ts";
import { toBackendError } from "./errors.ts";
import { createPodIdentity, type IdentitySettings, podUidOf } from "./identity.ts";
import { checkPodSettings, podManifest, type PodSettings } from "./manifest.ts";
import { createPatience, DEFAULT_PATIENCE, type PatienceTimes } from "./patience.ts";
import type { Pod } from "./pod.ts";
import { executorOf } from "./status.ts";
import { createWhy } from "./why.ts";

/** What the Pod backend is made of. */
export interface PodBackendOptions {
  readonly cluster: ExecutorCluster;
  readonly pods: PodSettings;
  readonly identity: Omit<IdentitySettings, "userId">;
  readonly clock: Clock;
  readonly logger: Logger;
  /**
   * Throws when this process may not act any more. Callers have asked it before each method that changes
   * something (`controller/leadership/guarded.ts`), so that it is asked here only before an effect that follows on a
   * read or another effect; `before` of the Kubernetes client asks once more as a request leaves.
   */
  guard(): void;
  readonly patience?: PatienceTimes;
}

/**
 * Executors as Pods. Nothing is kept here but how long a Pod has been in a bad state: what is true of
 * an executor is read from the API server each time.
 *
 * ```
 *  create --> Pending --> Running --> ended ----------+
 *               |  \                    |             +--> Terminating --> gone (name free)
 *               |   stuck (image, ...)--+             |        |
 *               +-------- deleted by us or others ----+        +--> overdue: its node is lost
 * ```
 * Throws an `Error` when the settings cannot work together.
 */
export function createPodBackend(options: PodBackendOptions): Backend {
  const { cluster, clock, guard, pods: settings } = options;
  const { prefix } = options.identity;
  const logger = options.logger.child({ backend: "pod" });
  checkPodSettings(settings);
  const keys = metadataKeys(prefix);
  const ours = { [keys.labels.runner]: "true" };
  const patience = createPatience(clock, options.patience ?? DEFAULT_PATIENCE);
  const identity = createPodIdentity({
    cluster,
    settings: { ...options.identity, userId: settings.userId },
    clock,
    logger,
    guard,
  });

  const why = createWhy({ cluster, clock });
  /** UIDs of Pods whose forced removal was logged: a finalizer of somebody else may keep one for long. */
  const forced = new Set<string>();

  /** As the controller sees it. Not pure: the patience with this Pod begins with the first look at it. */
  const seen = (pod: Pod): Executor =>
    executorOf(pod, {
      prefix,
      needsNode: identity.needsNode,
      warning: why.known(pod.uid),
      ...patience.judge(pod),
    });

  const call = async <T>(action: string, { signal }: Call, run: () => Promise<T>): Promise<T> => {
    signal.throwIfAborted();
    try {
      return await run();
    } catch (error) {
      signal.throwIfAborted();
      throw toBackendError(action, error);
    }
  };

  /** Undefined while entries cannot be listed, which keeps nobody from seeing the Pods. */
  const entriesFor = async (options: Call): Promise<IdentityEntry[] | undefined> => {
    try {
      return await identity.list(options);
    } catch (error) {
      options.signal.throwIfAborted();
      logger.warn("identity entries cannot be listed", { error });
      return undefined;
    }
  };

  const sweep = async (
    entries: readonly IdentityEntry[],
    uids: ReadonlySet<string>,
    options: Call,
  ) => {
    try {
      await identity.sweep(entries, uids, options);
    } catch (error) {
      options.signal.throwIfAborted();
      logger.warn("identity entries without executor cannot be deleted", { error });
    }
  };

  /** A Pod whose node is lost stays until somebody says that it may go. */
  const end = async ({ name, uid }: Pick<Executor, "name" | "uid">, options: Call) => {
    const left = await deletePod({ name, uid, graceSeconds: null }, options);
    if (left === undefined || left.uid !== uid || !patience.judge(left).overdue) return;
    guard();
    if (!forced.has(uid)) {
      logger.warn("executor of a lost node is removed", { executor: name, node: left.node });
    }
    forced.add(uid);
    await deletePod({ name, uid, graceSeconds: 0 }, options);
  };

  /** True for one that only lost our labels, of which a watch tells as of a deletion. */
  const livesOn = async (pod: Pod, options: Call): Promise<boolean> => {
    if (pod.deletion !== null) return false;
    try {
      return (await cluster.getPod(pod.name, options))?.uid === pod.uid;
    } catch {
      // Told as gone: before the claim it is looked for again, after it the gate's heartbeats still count.
      return false;
    }
  };

  /**
   * Whether a call has failed because exactly this Pod is gone: the name has another UID, or none. The
   * API server answers 409 as well when others change the Pod faster than its own tries follow, so that
   * a look decides. Rejects when that fails.
   */
  const isGone = async (
    error: unknown,
    { name, uid }: { readonly name: string; readonly uid: string },
    options: Call,
  ): Promise<boolean> => {
    if (!(error instanceof ClusterError)) return false;
    if (error.code === "not_found") return true;
    return error.code === "conflict" && (await cluster.getPod(name, options))?.uid !== uid;
  };

  /** A name that has another UID, or none, is success. */
  const deletePod = async (
    pod: Parameters<ExecutorCluster["deletePod"]>[0],
    options: Call,
  ): Promise<Pod | undefined> => {
    try {
      return await cluster.deletePod(pod, options);
    } catch (error) {
      if (await isGone(error, pod, options)) return undefined;
      throw error;
    }
  };

  return {
    name: "pod",
    find(name, options) {
      return call(`Find executor "${name}"`, options, async () => {
        const pod = await cluster.getPod(name, options);
        if (pod === undefined) return undefined;
        await why.ask(pod, options);
        return seen(pod);
      });
    },
    create(spec, options) {
      return call(`Make executor "${spec.name}"`, options, async () => {
        return seen(await cluster.createPod(podManifest(spec, settings), options));
      });
    },
    bindIdentity(executor, assignment, options) {
      const action = `Bind the identity of executor "${executor.name}"`;
      return call(action, options, async () => {
        const pod = await cluster.getPod(executor.name, options);
        // One that is being deleted is made again, and gets no identity any more.
        if (pod === undefined || pod.uid !== executor.uid || pod.deletion !== null) {
          throw new BackendError("conflict", `${action}: it is gone, or being deleted`);
        }
        if (pod.annotations[keys.annotations.spiffeId] !== assignment.identity.spiffeId) {
          const message = `${action}: it was made for another SPIFFE ID`;
          throw new BackendError("invalid", message, { retryable: false });
        }
        await identity.bind(seen(pod), assignment, options);
      });
    },
    markTerminal({ name, uid }, options) {
      return call(`Mark executor "${name}"`, options, async () => {
        try {
          const labels = { [keys.labels.terminal]: "true" };
          await cluster.labelPod({ name, uid, labels }, options);
        } catch (error) {
          if (!await isGone(error, { name, uid }, options)) throw error;
        }
      });
    },
    list(options) {
      return call("List executors", options, async () => {
        // In this order: a Pod of an entry that is there now was there before the entry.
        const entries = await entriesFor(options);
        const pods = await cluster.listPods(ours, options);
        const uids = new Set(pods.map(({ uid }) => uid));
        patience.keepOnly(uids);
        for (const uid of forced) if (!uids.has(uid)) forced.delete(uid);
        await why.askSome(pods, options);
        if (entries !== undefined) await sweep(entries, uids, options);
        if (entries === undefined) return pods.map(seen);
        const bound = new Set(entries.map(podUidOf));
        return pods.map((pod) => ({ ...seen(pod), identityBound: bound.has(pod.uid) }));
      });
    },
    others(options) {
      return call("List what else is in the namespace", options, async () => {
        const pods = await cluster.listPods({}, options);
        return pods.filter(({ labels }) => labels[keys.labels.runner] !== "true")
          .map(({ name }) => name);
      });
    },
    async *watch(options) {
      const known = new Map<string, string>();
      for await (const change of cluster.watchPods(ours, options)) {
        switch (change.kind) {
          case "all": {
            const names = new Set(change.pods.map(({ name }) => name));
            // Not looked at one by one as below: one that lost only our labels while nobody watched is told
            // as gone.
            const left = [...known.keys()].filter((name) => !names.has(name));
            for (const name of left) known.delete(name);
            yield* left.map(gone);
            for (const pod of change.pods) {
              known.set(pod.name, pod.uid);
              yield { name: pod.name as ExecutorName, executor: seen(pod) };
            }
            break;
          }
          case "changed":
            known.set(change.pod.name, change.pod.uid);
            yield { name: change.pod.name as ExecutorName, executor: seen(change.pod) };
            break;
          case "removed": {
            const { name, uid } = change.pod;
            if (known.get(name) !== uid || await livesOn(change.pod, options)) break;
            patience.forget(uid);
            known.delete(name);
            yield gone(name);
            break;
          }
          default:
            change satisfies never;
        }
      }
    },
    delete(executor, options) {
      return call(`Delete executor "${executor.name}"`, options, async () => {
        await end(executor, options);
        await identity.unbind(executor, options);
      });
    },
  };
}

function gone(name: string): ExecutorChange {
  return { name: name as ExecutorName, executor: null };
}
