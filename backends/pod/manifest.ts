import { posix } from "node:path";
import type { ExecutorSpec } from "../../controller/backend.ts";
import type { SpiffeVolume } from "../../controller/config/config.ts";
import { objectOrEmpty } from "../../lib/json_object.ts";
import type { Manifest } from "./cluster.ts";
import { EXECUTOR_CONTAINER } from "./status.ts";
import { namedObjects, type PodTemplate } from "./template.ts";

type Json = Readonly<Record<string, unknown>>;
type Named = Json & { readonly name: string };

/** What every executor's Pod is made of. */
export interface PodSettings {
  /** `POD_EXECUTOR_IMAGE`. */
  readonly image: string;
  readonly serviceAccount: string;
  /** The user that the SPIRE agent knows the executor by. */
  readonly userId: number;
  readonly template: PodTemplate;
  readonly spiffeVolume: SpiffeVolume;
  /** `SPIFFE_ENDPOINT_SOCKET`: `unix:///path` or `unix:/path`. */
  readonly endpointSocket: string;
}

/** Where the gate keeps what belongs to the job; working and home directory. */
const WORK_DIRECTORY = "/work";
/** Where the image links to the gate's certificate from. */
const GATE_DIRECTORY = "/run/identity-gate";
const GRACE_SECONDS = 120;
const SPIFFE_VOLUME = "spiffe-workload-api";

/**
 * The Pod of an executor: the template under what is ours. Ours are name, metadata, image, user,
 * service account, restart policy, launch environment and the Workload API's mount; of everything
 * else the template may give more or less than the defaults, which satisfy Pod Security *restricted*.
 */
export function podManifest(spec: ExecutorSpec, settings: PodSettings): Manifest {
  const { template, serviceAccount, userId } = settings;
  const { serviceAccount: _oldName, containers, ...rest } = template.spec;
  const theirs = namedObjects(containers).find(({ name }) => name === EXECUTOR_CONTAINER);
  const sidecars = namedObjects(containers).filter(({ name }) => name !== EXECUTOR_CONTAINER);
  const theirVolumes = namedObjects(rest.volumes);
  const spiffe = spiffeMount(settings);
  const mounts = mountsOf(theirs, spiffe);
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: spec.name,
      labels: { ...template.labels, ...spec.metadata.labels },
      annotations: { ...template.annotations, ...spec.metadata.annotations },
    },
    spec: {
      terminationGracePeriodSeconds: GRACE_SECONDS,
      enableServiceLinks: false,
      ...rest,
      restartPolicy: "Never",
      serviceAccountName: serviceAccount,
      automountServiceAccountToken: false,
      securityContext: {
        runAsGroup: userId,
        seccompProfile: { type: "RuntimeDefault" },
        ...objectOrEmpty(rest.securityContext),
        runAsNonRoot: true,
        runAsUser: userId,
      },
      volumes: volumesOf(theirVolumes, spiffe, mounts),
      containers: [executorContainer(spec, { settings, theirs, mounts }), ...sidecars],
    },
  };
}

/**
 * Checks what no template shows: throws an `Error` when the Workload API would be mounted over a
 * place that jobs write to.
 */
export function checkPodSettings(settings: PodSettings): void {
  const spiffe = spiffeMount(settings);
  const hidden = WRITABLE.find(({ mountPath }) =>
    spiffe !== null && `${mountPath}/`.startsWith(spiffe.path === "/" ? "/" : `${spiffe.path}/`)
  );
  if (hidden === undefined) return;
  throw new Error(
    `Mount the Workload API: the folder of SPIFFE_ENDPOINT_SOCKET "${settings.endpointSocket}" would ` +
      `hide "${hidden.mountPath}": give the socket a folder of its own`,
  );
}

/** Seconds between SIGTERM and SIGKILL. */
function graceSecondsOf(template: PodTemplate): number {
  const given = template.spec.terminationGracePeriodSeconds;
  return typeof given === "number" ? given : GRACE_SECONDS;
}

function executorContainer(
  spec: ExecutorSpec,
  { settings, theirs, mounts }: {
    readonly settings: PodSettings;
    readonly theirs: Named | undefined;
    readonly mounts: readonly Json[];
  },
): Json {
  const { image, userId, template } = settings;
  const { restartPolicy: _never, restartPolicyRules: _none, env, ...rest }: Json = theirs ?? {};
  const given = objectOrEmpty(rest.securityContext);
  const confined = given.privileged === true ? given : {
    allowPrivilegeEscalation: false,
    ...given,
    capabilities: { drop: ["ALL"], ...objectOrEmpty(given.capabilities) },
  };
  return {
    workingDir: WORK_DIRECTORY,
    terminationMessagePolicy: "FallbackToLogsOnError",
    ...rest,
    name: EXECUTOR_CONTAINER,
    image,
    env: environmentOf(namedObjects(env), {
      ...spec.environment,
      SPIFFE_ENDPOINT_SOCKET: settings.endpointSocket,
      CI_GRACE_SECONDS: String(graceSecondsOf(template)),
    }),
    volumeMounts: mounts,
    securityContext: { ...confined, runAsNonRoot: true, runAsUser: userId },
  };
}

/** Ours win by name; the kubelet reads `$(NAME)` and `$$` in values, which are meant as they are. */
function environmentOf(theirs: readonly Named[], ours: Readonly<Record<string, string>>): Json[] {
  return [
    { name: "HOME", value: WORK_DIRECTORY },
    ...theirs.filter(({ name }) => !Object.hasOwn(ours, name)),
    ...Object.entries(ours).map(([name, value]) => ({
      name,
      value: value.replace(/\$(?=[$(])/g, "$$$$"),
    })),
  ].filter(({ name }, index, all) => all.findLastIndex((each) => each.name === name) === index);
}

/** The Workload API: where it is mounted, and from what; null where the template has it. */
function spiffeMount(
  { spiffeVolume, endpointSocket }: PodSettings,
): { readonly path: string; readonly volume: Json } | null {
  const path = posix.dirname(endpointSocket.replace(/^unix:(\/\/)?/, ""));
  switch (spiffeVolume.kind) {
    case "none":
      return null;
    case "csi":
      return { path, volume: { csi: { driver: "csi.spiffe.io", readOnly: true } } };
    case "host_path":
      return { path, volume: { hostPath: { path: spiffeVolume.directory, type: "Directory" } } };
    default:
      return spiffeVolume satisfies never;
  }
}

/** What the template mounts, and ours wherever it does not mount anything itself. */
function mountsOf(theirs: Named | undefined, spiffe: { readonly path: string } | null): Json[] {
  const given = namedObjects(theirs?.volumeMounts)
    .filter(({ mountPath }) => spiffe === null || !samePath(mountPath, spiffe.path));
  const taken = (path: string) => given.some(({ mountPath }) => samePath(mountPath, path));
  const own = WRITABLE.filter(({ mountPath }) => !taken(mountPath))
    .map(({ name, mountPath }) => ({ name, mountPath }));
  const api = spiffe === null
    ? []
    : [{ name: SPIFFE_VOLUME, mountPath: spiffe.path, readOnly: true }];
  return [...given, ...own, ...api];
}

/** The template's volumes, and ours as far as they are mounted and the template has none of that name. */
function volumesOf(
  theirs: readonly Named[],
  spiffe: { readonly volume: Json } | null,
  mounts: readonly Json[],
): Json[] {
  const given = theirs.filter(({ name }) => spiffe === null || name !== SPIFFE_VOLUME);
  const own = WRITABLE
    .filter(({ name }) => mounts.some((mount) => mount.name === name))
    .filter(({ name }) => !given.some((volume) => volume.name === name))
    .map(({ name, emptyDir }) => ({ name, emptyDir }));
  return [
    ...given,
    ...own,
    ...(spiffe === null ? [] : [{ name: SPIFFE_VOLUME, ...spiffe.volume }]),
  ];
}

function samePath(a: unknown, b: string): boolean {
  return typeof a === "string" && posix.resolve(a) === posix.resolve(b);
}

/** Writable places; a Pod that fills one beyond its limit is evicted, and not its node. */
const WRITABLE = [
  { name: "work", mountPath: WORK_DIRECTORY, emptyDir: { sizeLimit: "20Gi" } },
  { name: "tmp", mountPath: "/tmp", emptyDir: { sizeLimit: "4Gi" } },
  {
    name: "identity-gate",
    mountPath: GATE_DIRECTORY,
    emptyDir: { medium: "Memory", sizeLimit: "1Mi" },
  },
];
