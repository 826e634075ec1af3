import type { Image } from "../support/container_image.ts";
import type { KubeAccess } from "../support/kube_access.ts";
import type { KubeClient, KubeObject } from "../support/kube_client.ts";
import { at, listAt } from "../support/kube_manifests.ts";

/** What a container's environment is made from. */
export interface EnvironmentSources {
  readonly access: KubeAccess;
  readonly client: KubeClient;
  readonly image: Image;
  readonly podIp: string;
}

/**
 * The environment of a container as kubelet and runtime make it: the image's, the API server's address,
 * `envFrom`, then `env` with `$(NAME)` replaced by what stands before it. Rejects for a source that is
 * not there.
 */
export async function environmentOf(
  pod: KubeObject,
  container: unknown,
  sources: EnvironmentSources,
): Promise<Record<string, string>> {
  const { client, access, image } = sources;
  const namespace = String(at(pod, "metadata", "namespace"));
  const data = async (kind: string, name: unknown) =>
    at(await client.call("GET", `/api/v1/namespaces/${namespace}/${kind}/${name}`), "data");
  const environment: Record<string, string> = {
    PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    HOSTNAME: String(at(pod, "metadata", "name")),
    ...image.config.environment,
    KUBERNETES_SERVICE_HOST: new URL(access.url).hostname,
    KUBERNETES_SERVICE_PORT: new URL(access.url).port,
    KUBERNETES_SERVICE_PORT_HTTPS: new URL(access.url).port,
  };
  for (const source of listAt(container, "envFrom")) {
    const name = at(source, "configMapRef", "name");
    if (name === undefined) {
      throw new Error("Read envFrom: the test kubelet knows configMapRef only");
    }
    for (const [key, value] of Object.entries(Object(await data("configmaps", name)))) {
      environment[key] = String(value);
    }
  }
  for (const one of listAt(container, "env")) {
    const name = String(at(one, "name"));
    const field = at(one, "valueFrom", "fieldRef", "fieldPath");
    const secret = at(one, "valueFrom", "secretKeyRef");
    if (field !== undefined) environment[name] = fieldOf(pod, String(field), sources.podIp);
    else if (secret !== undefined) {
      const value = at(await data("secrets", at(secret, "name")), String(at(secret, "key")));
      environment[name] = new TextDecoder().decode(Uint8Array.fromBase64(String(value)));
    } else environment[name] = expanded(String(at(one, "value") ?? ""), environment);
  }
  return environment;
}

/** `$(NAME)` of a known name is its value, `$$` a dollar sign; everything else stays. */
export function expanded(text: string, environment: Readonly<Record<string, string>>): string {
  return text.replace(/\$\$|\$\(([^()]+)\)/g, (all, name: string | undefined) => {
    if (name === undefined) return "$";
    return environment[name] ?? all;
  });
}

function fieldOf(pod: KubeObject, path: string, podIp: string): string {
  switch (path) {
    case "status.podIP":
      return podIp;
    case "metadata.name":
    case "metadata.namespace":
    case "metadata.uid":
      return String(at(pod, ...path.split(".")));
    default:
      throw new Error(`Read the field "${path}": the test kubelet does not know it`);
  }
}
