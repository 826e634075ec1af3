import { at, listAt } from "../support/kube_manifests.ts";
import type { KubeAccess } from "../support/kube_access.ts";
import type { KubeClient, KubeObject } from "../support/kube_client.ts";

/** Where volumes come from. */
export interface VolumeSources {
  readonly access: KubeAccess;
  readonly client: KubeClient;
  /** What the CSI driver `csi.spiffe.io` gives every Pod: a folder with the Workload API's socket. */
  readonly workloadApi: string;
}

/** A folder of the machine and where a container finds it. */
export interface Mount {
  readonly source: string;
  readonly target: string;
  readonly readOnly: boolean;
}

/**
 * Makes the volumes of a Pod below `folder`, each as its kind says: `emptyDir`, `secret`, `configMap`,
 * the projected volume of the service account, `csi` of SPIFFE, `hostPath`. Rejects for another kind, and
 * where a Secret or ConfigMap is not there.
 */
export async function makeVolumes(
  pod: KubeObject,
  folder: string,
  sources: VolumeSources,
): Promise<ReadonlyMap<string, string>> {
  const made = new Map<string, string>();
  for (const volume of listAt(pod, "spec", "volumes")) {
    const name = String(at(volume, "name"));
    made.set(name, await makeVolume(volume, { pod, place: `${folder}/volumes/${name}`, sources }));
  }
  return made;
}

async function makeVolume(volume: unknown, { pod, place, sources }: {
  readonly pod: KubeObject;
  readonly place: string;
  readonly sources: VolumeSources;
}): Promise<string> {
  if (at(volume, "csi", "driver") === "csi.spiffe.io") return sources.workloadApi;
  const hostPath = at(volume, "hostPath", "path");
  if (typeof hostPath === "string") return hostPath;
  await Deno.mkdir(place, { recursive: true });
  const group = Number(at(pod, "spec", "securityContext", "fsGroup") ?? 0);
  await Deno.chown(place, 0, group);
  const write = async (name: string, bytes: Uint8Array, mode: number) => {
    await Deno.writeFile(`${place}/${name}`, bytes);
    await Deno.chown(`${place}/${name}`, 0, group);
    await Deno.chmod(`${place}/${name}`, mode);
  };
  if (at(volume, "emptyDir") !== undefined) {
    await Deno.chmod(place, 0o777);
    return place;
  }
  await Deno.chmod(place, 0o755);
  const namespace = String(at(pod, "metadata", "namespace"));
  const fetched = async (kind: string, name: unknown) =>
    at(await sources.client.call("GET", `/api/v1/namespaces/${namespace}/${kind}/${name}`), "data");
  const secret = at(volume, "secret");
  if (secret !== undefined) {
    const mode = Number(at(secret, "defaultMode") ?? 0o644);
    for (const [name, value] of entries(await fetched("secrets", at(secret, "secretName")))) {
      await write(name, Uint8Array.fromBase64(value), mode);
    }
    return place;
  }
  const configMap = at(volume, "configMap");
  if (configMap !== undefined) {
    for (const [name, value] of entries(await fetched("configmaps", at(configMap, "name")))) {
      await write(name, new TextEncoder().encode(value), 0o644);
    }
    return place;
  }
  if (listAt(volume, "projected", "sources").length > 0) {
    const account = String(at(pod, "spec", "serviceAccountName"));
    const token = await sources.access.token(namespace, account);
    await write("token", new TextEncoder().encode(token), 0o644);
    await write("ca.crt", await Deno.readFile(sources.access.caFile), 0o644);
    await write("namespace", new TextEncoder().encode(namespace), 0o644);
    return place;
  }
  throw new Error(
    `Make the volume "${at(volume, "name")}": the test kubelet does not know its kind`,
  );
}

function entries(value: unknown): [string, string][] {
  return Object.entries(Object(value)).map(([name, one]) => [name, String(one)]);
}

/** The mounts of one container, outer ones first. */
export function mountsOf(container: unknown, volumes: ReadonlyMap<string, string>): Mount[] {
  return listAt(container, "volumeMounts").map((mount) => {
    const source = volumes.get(String(at(mount, "name")));
    if (source === undefined) throw new Error(`Mount "${at(mount, "name")}": no such volume`);
    const subPath = at(mount, "subPath");
    return {
      source: typeof subPath === "string" ? `${source}/${subPath}` : source,
      target: String(at(mount, "mountPath")).replace(/\/+$/, ""),
      readOnly: at(mount, "readOnly") === true,
    };
  }).sort((a, b) => a.target.length - b.target.length);
}
