import type { PodLabel } from "../../controller/leadership/leader_label.ts";
import { objectOrEmpty } from "../../lib/json_object.ts";
import type { Kubernetes } from "./client.ts";
import { isNotFound } from "./error.ts";

/**
 * A label of Pods in one namespace, e.g. `ci.ddupan.top/leader`, with the value `true`. The annotation
 * `<key>-of` beside it names the `lease` (`namespace/name`), so that two installations in one namespace
 * leave each other's Pods alone. Rejects with `KubernetesError`, or the signal's reason. Rights: list
 * and patch of pods.
 */
export function createPodLabel(
  kubernetes: Pick<Kubernetes, "core" | "call" | "listAll">,
  { namespace, key, lease }: {
    readonly namespace: string;
    readonly key: string;
    readonly lease: string;
  },
): PodLabel {
  const annotation = `${key}-of`;
  return {
    async set(pod, on, { signal }) {
      const metadata = {
        labels: { [key]: on ? "true" : null },
        annotations: { [annotation]: on ? lease : null },
      };
      try {
        await kubernetes.call(
          `${on ? "Put" : "Take"} label "${key}" ${on ? "on" : "off"} Pod "${namespace}/${pod}"`,
          (options) =>
            kubernetes.core.patchNamespacedPod(
              { namespace, name: pod, body: { metadata } },
              options,
            ),
          { signal, patch: "merge" },
        );
        return true;
      } catch (error) {
        if (isNotFound(error)) return false;
        throw error;
      }
    },
    async list({ signal }) {
      const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods`;
      const collection = { path, labelSelector: `${key}=true` };
      const pods = await kubernetes.listAll(`List Pods with label "${key}"`, collection, {
        signal,
      });
      return pods.map(({ metadata }) => objectOrEmpty(metadata))
        .filter(({ annotations }) => objectOrEmpty(annotations)[annotation] === lease)
        .map(({ name }) => String(name));
    },
  };
}
