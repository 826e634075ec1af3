import type { PodLabel } from "../../controller/leader_label.ts";
import type { Kubernetes } from "./client.ts";
import { isNotFound } from "./error.ts";

/**
 * A label of Pods in one namespace, e.g. `ci.ddupan.top/leader`, with the value `true`. Rejects with
 * `KubernetesError`, or the signal's reason. Rights: patch of pods.
 */
export function createPodLabel(
  kubernetes: Pick<Kubernetes, "core" | "call">,
  { namespace, key }: { readonly namespace: string; readonly key: string },
): PodLabel {
  return {
    async set(pod, on, { signal }) {
      const body = { metadata: { labels: { [key]: on ? "true" : null } } };
      try {
        await kubernetes.call(
          `${on ? "Put" : "Take"} label "${key}" ${on ? "on" : "off"} Pod "${namespace}/${pod}"`,
          (options) => kubernetes.core.patchNamespacedPod({ namespace, name: pod, body }, options),
          { signal, patch: "merge" },
        );
        return true;
      } catch (error) {
        if (isNotFound(error)) return false;
        throw error;
      }
    },
  };
}
