import type { Basics } from "./basics.ts";
import type { Config } from "./config.ts";
import { readableFile } from "./parse_servers.ts";
import type { Reader } from "./reader.ts";
import { integer, matching } from "./values.ts";

/** Where kubelet mounts a Pod's service account. */
const SERVICE_ACCOUNT_DIR = "/var/run/secrets/kubernetes.io/serviceaccount";

/**
 * How to reach the API server: `KUBECONFIG` wins over the service account of the Pod that this is.
 * Looked at only where Pods or the election need it.
 */
export function kubernetesOf(
  reader: Reader,
  { executors, components, leaderElection }: Basics & Pick<Config, "leaderElection">,
  readFile: (path: string) => string,
): Config["kubernetes"] {
  const pods = executors === "real" && components.has("pod-worker");
  const elected = leaderElection === "kubernetes" && components.has("scheduler");
  if (!pods && !elected) return null;
  if (reader.given("KUBECONFIG")) {
    const path = readableFile(reader, "KUBECONFIG", readFile);
    return path === null ? null : { kind: "kubeconfig", path };
  }
  if (!reader.given("KUBERNETES_SERVICE_HOST")) {
    reader.missing(
      ["KUBECONFIG", "KUBERNETES_SERVICE_HOST"],
      "a kubeconfig file; in a Pod Kubernetes itself sets the other one",
      `KUBECONFIG or KUBERNETES_SERVICE_HOST is required for ${
        pods ? "pod-worker" : "LEADER_ELECTION=kubernetes"
      }`,
    );
    return null;
  }
  const host = reader.optional("KUBERNETES_SERVICE_HOST", {
    allowed: "a host name or an IP address",
    parse: matching(/^[A-Za-z0-9][A-Za-z0-9.:-]{0,252}$|^::[0-9a-fA-F.:]{1,40}$/),
  });
  const port = reader.value("KUBERNETES_SERVICE_PORT", "443", {
    allowed: "a port, 1 to 65535",
    parse: integer(1, 65_535),
  });
  const directory = reader.value("KUBERNETES_SERVICE_ACCOUNT_DIR", SERVICE_ACCOUNT_DIR, {
    allowed: "an absolute directory",
    parse: (text) => /^\/[^\0]*$/.test(text) ? text.replace(/(.)\/+$/, "$1") : undefined,
  });
  return host === null ? null : { kind: "service_account", host, port, directory };
}
