import type { IdentityEntry } from "../../backends/pod/cluster.ts";
import { objectOrEmpty } from "../../lib/json_object.ts";

/**
 * The environment that a kubelet gives the container `executor` of a Pod: later entries see earlier
 * ones as `$(NAME)`, `$$` is one dollar, and what names nothing stays as it is (Kubernetes API
 * reference, EnvVar). Entries with `valueFrom` are left out.
 */
export function containerEnvironment(pod: unknown): Record<string, string> {
  const environment: Record<string, string> = {};
  for (const { name, value } of objects(executorContainer(pod).env)) {
    if (typeof name !== "string" || typeof value !== "string") continue;
    environment[name] = value.replace(
      /\$\$|\$\(([^)]*)\)/g,
      (whole, reference?: string) => whole === "$$" ? "$" : environment[reference ?? ""] ?? whole,
    );
  }
  return environment;
}

/** The container `executor` of a Pod as JSON; empty when it has none. */
export function executorContainer(pod: unknown): Readonly<Record<string, unknown>> {
  const { containers } = objectOrEmpty(objectOrEmpty(pod).spec);
  return objects(containers).find(({ name }) => name === "executor") ?? {};
}

/** The SPIFFE ID that an entry gives a process of that user in that Pod; null when it gives none. */
export function spiffeIdOf(
  entry: IdentityEntry | undefined,
  podUid: string | undefined,
  userId: number,
): string | null {
  const needed = entry?.spec.selectors ?? [];
  const shown = [`k8s:pod-uid:${podUid}`, `unix:uid:${userId}`];
  const fits = needed.length > 0 && needed.every((selector) => shown.includes(selector));
  return fits ? entry?.spec.spiffeID ?? null : null;
}

function objects(value: unknown): Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.map(objectOrEmpty) : [];
}
