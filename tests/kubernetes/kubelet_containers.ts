import type { ContainerOptions } from "../support/container.ts";
import { at, listAt } from "../support/kube_manifests.ts";
import type { KubeletOptions } from "./kubelet.ts";
import type { Entry, Running } from "./kubelet_status.ts";
import { iso, lastWords } from "./kubelet_words.ts";
import { environmentOf } from "./pod_environment.ts";
import { mountsOf } from "./pod_volumes.ts";

/** How a container has ended. */
export interface ContainerEnd {
  readonly exitCode: number;
  readonly startedAt: string;
}

/** Where a Pod keeps its volumes and logs. */
export function podFolder(
  { folder }: Pick<KubeletOptions, "folder">,
  { name, uid }: Pick<Entry, "name" | "uid">,
): string {
  return `${folder}/${name}-${uid}`;
}

/** The containers of a Pod, none of them started. */
export function waitingContainers({ object, uid }: Pick<Entry, "object" | "uid">): Running[] {
  return listAt(object, "spec", "containers").map((spec, index) => ({
    spec,
    name: String(at(spec, "name")),
    // The attestor's rule for a container's id: 64 hexadecimal digits.
    containerId: uid.replaceAll("-", "").repeat(2).slice(0, 62) +
      (index === 0 ? uid.slice(-2) : index.toString(16).padStart(2, "0")),
    container: null,
    restarts: 0,
    state: { waiting: { reason: "ContainerCreating" } },
    lastState: {},
    endedAt: null,
    reason: null,
  }));
}

/** What a container is started with, exactly as its Pod's spec says. Rejects for an image that is not here. */
export async function containerOptions(
  { entry, one, volumes }: {
    readonly entry: Entry;
    readonly one: Running;
    /** Folders of the Pod's volumes, by their names. */
    readonly volumes: ReadonlyMap<string, string>;
  },
  options: KubeletOptions,
): Promise<ContainerOptions> {
  const { object } = entry;
  const folder = podFolder(options, entry);
  const image = options.images.get(String(at(one.spec, "image")));
  if (image === undefined) throw new Error(`no image "${at(one.spec, "image")}"`);
  const user = Number(
    at(one.spec, "securityContext", "runAsUser") ??
      at(object, "spec", "securityContext", "runAsUser") ?? image.config.user.split(":")[0],
  );
  const group = Number(
    at(one.spec, "securityContext", "runAsGroup") ??
      at(object, "spec", "securityContext", "runAsGroup") ?? image.config.user.split(":")[1],
  );
  const environment = await environmentOf(object, one.spec, {
    access: options.access,
    client: options.client,
    image,
    podIp: entry.ip,
  });
  const command = listAt(one.spec, "command").map(String);
  const args = listAt(one.spec, "args").map(String);
  return {
    inpod: options.inpod,
    podUid: entry.uid,
    containerId: one.containerId,
    image: image.layer,
    command: [...command.length > 0 ? command : image.config.entrypoint, ...args],
    environment,
    workingDirectory: String(at(one.spec, "workingDir") ?? image.config.workingDirectory),
    userId: user,
    groupId: group,
    mounts: [
      ...image.parts.map((part) => ({ ...part, readOnly: true })),
      ...mountsOf(one.spec, volumes),
    ],
    readOnlyRoot: at(one.spec, "securityContext", "readOnlyRootFilesystem") === true,
    noNewPrivileges: at(one.spec, "securityContext", "allowPrivilegeEscalation") === false,
    noCapabilities: listAt(one.spec, "securityContext", "capabilities", "drop").includes("ALL"),
    folder: `${folder}/${one.name}-${one.restarts}`,
    logFile: `${folder}/${one.name}.log`,
  };
}

/** The state of a container that has ended, with its last words where its spec asks for them. */
export async function terminated(
  one: Running,
  { exitCode, startedAt }: ContainerEnd,
): Promise<Running["state"]> {
  const wordy = exitCode !== 0 &&
    at(one.spec, "terminationMessagePolicy") === "FallbackToLogsOnError";
  const message = wordy && one.container !== null ? await lastWords(one.container.logFile) : "";
  return {
    terminated: {
      exitCode,
      reason: one.reason ?? (exitCode === 0 ? "Completed" : "Error"),
      ...message === "" ? {} : { message },
      startedAt,
      finishedAt: iso(Date.now()),
    },
  };
}
