import { createBackgroundTasks } from "../support/background_tasks.ts";
import type { KubeClient } from "../support/kube_client.ts";
import { at } from "../support/kube_manifests.ts";
import { NAMESPACE } from "./cluster.ts";
import type { Kubelet } from "./kubelet.ts";

/** An executor's Pod as it was seen from outside. */
export interface SeenExecutor {
  readonly name: string;
  readonly uid: string;
  /** When the watch told of it, ms since the epoch. */
  readonly createdAt: number;
  /** From then to the facade's first answer to the gate; null until it is known. */
  readonly firstCallMs: number | null;
}

/** Follows the Pods of the executors' namespace. */
export interface SeenExecutors extends AsyncDisposable {
  seen(): readonly SeenExecutor[];
}

/** Starts to follow; Pods that are there already count as made now. */
export function watchExecutors(client: KubeClient, kubelet: Kubelet): SeenExecutors {
  const stop = new AbortController();
  const tasks = createBackgroundTasks(() => {});
  const seen = new Map<string, { -readonly [Key in keyof SeenExecutor]: SeenExecutor[Key] }>();
  const path = `/api/v1/namespaces/${NAMESPACE.executors}/pods`;
  tasks.add((async () => {
    for await (const { object } of client.watch(path, stop.signal)) {
      const uid = String(at(object, "metadata", "uid"));
      const name = String(at(object, "metadata", "name"));
      const one = seen.get(uid) ?? { name, uid, createdAt: Date.now(), firstCallMs: null };
      seen.set(uid, one);
      if (one.firstCallMs !== null) continue;
      const met = metFacadeAt(await kubelet.logOf({ name, uid }, "executor"));
      if (met !== undefined) one.firstCallMs = met - one.createdAt;
    }
  })());
  return {
    seen: () => [...seen.values()],
    async [Symbol.asyncDispose]() {
      stop.abort();
      await tasks.ended();
    },
  };
}

/** When the gate's log says that the facade has answered; `undefined` while it does not. */
function metFacadeAt(log: string): number | undefined {
  const line = log.split("\n").find((one) => one.includes('"phase":"facade"'));
  const [, time] = /"time":"([^"]+)"/.exec(line ?? "") ?? [];
  return time === undefined ? undefined : Date.parse(time);
}
