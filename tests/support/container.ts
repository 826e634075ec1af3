import { eventually } from "./eventually.ts";
import { startProcess } from "./process.ts";

/** What a container is started with. */
export interface ContainerOptions {
  /** The script of the peers folder that puts a command into a Pod's cgroup. */
  readonly inpod: string;
  readonly podUid: string;
  /** 64 hexadecimal digits. */
  readonly containerId: string;
  /** Layer of the image, on top of this machine's own root. */
  readonly image: string;
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly workingDirectory: string;
  readonly userId: number;
  readonly groupId: number;
  /** Folders of the machine, and where the container finds them. */
  readonly mounts: readonly {
    readonly source: string;
    readonly target: string;
    readonly readOnly: boolean;
  }[];
  readonly readOnlyRoot: boolean;
  /** `allowPrivilegeEscalation: false`. */
  readonly noNewPrivileges: boolean;
  /** `capabilities.drop: [ALL]`. */
  readonly noCapabilities: boolean;
  /** Folder of this container on the machine. */
  readonly folder: string;
  /** Where its output is added. */
  readonly logFile: string;
}

/** A container that has been started. */
export interface Container {
  /** Its first process. */
  readonly pid: number;
  readonly logFile: string;
  /** Resolves to the exit code of its first process; 128 + number when a signal ended it. */
  readonly exited: Promise<number>;
  /** To its first process, as a runtime does. */
  terminate(): Promise<void>;
  /** SIGKILL to every process in it. */
  kill(): Promise<void>;
  /** Processes in it. */
  processes(): Promise<number[]>;
}

/**
 * Lays a root over the machine's own (so that nothing it writes stays), with the image's files, mounts
 * and an empty /tmp, and becomes the command there. Arguments: folder, image, read-only root (0/1),
 * working directory, options of setpriv, `source target ro|rw` of each mount, `--`, command.
 */
const BECOME = String.raw`
set -euo pipefail
folder=$1 image=$2 ro=$3 cwd=$4 privileges=$5; shift 5
echo "$$" >"$folder/pid"
layers=$folder/layers root=$folder/layers/root
mkdir -p "$layers"
mount -t tmpfs -o mode=0755,size=512m tmpfs "$layers"
mkdir "$layers/upper" "$layers/work" "$root"
mount -t overlay -o "lowerdir=$image:/,upperdir=$layers/upper,workdir=$layers/work" overlay "$root"
mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777,size=512m tmpfs "$root/tmp"
while [ "$1" != -- ]; do
  # /var/run is a link, and leads out of the root unless it is followed inside.
  target=$root$(chroot "$root" realpath -m "$2")
  mkdir -p "$target"
  mount --bind "$1" "$target"
  [ "$3" = rw ] || mount -o remount,bind,ro "$target"
  shift 3
done
shift
[ "$ro" = 0 ] || mount -o remount,ro "$root"
# shellcheck disable=SC2086
exec chroot "$root" /usr/bin/setpriv $privileges /usr/bin/env -u SHLVL -u PWD -u OLDPWD -u _ -C "$cwd" "$@"
`;

/** Starts a container in the cgroup of its Pod. Rejects when it did not come to its command in 10 s. */
export async function startContainer(options: ContainerOptions): Promise<Container> {
  const { folder, podUid, containerId } = options;
  await Deno.mkdir(folder, { recursive: true });
  const privileges = [
    `--reuid=${options.userId}`,
    `--regid=${options.groupId}`,
    "--clear-groups",
    ...options.noNewPrivileges ? ["--no-new-privs"] : [],
    ...options.noCapabilities ? ["--bounding-set=-all", "--inh-caps=-all"] : [],
  ];
  const process = await startProcess("/bin/bash", [
    options.inpod,
    podUid,
    containerId,
    "unshare",
    "--mount",
    "--propagation",
    "private",
    "/bin/bash",
    "-c",
    BECOME,
    "become",
    folder,
    options.image,
    options.readOnlyRoot ? "1" : "0",
    options.workingDirectory,
    privileges.join(" "),
    ...options.mounts.flatMap((one) => [one.source, one.target, one.readOnly ? "ro" : "rw"]),
    "--",
    ...options.command,
  ], { logFile: options.logFile, clearEnv: true, env: options.environment });
  const pid = await eventually(async () => {
    const text = await Deno.readTextFile(`${folder}/pid`).catch(() => "");
    return text.endsWith("\n") && Number(text);
  }, { what: `the first process of "${folder}"`, timeoutMs: 10_000 });
  const processes = () => processesIn(podUid, containerId);
  return {
    pid,
    logFile: process.logFile,
    exited: process.exited,
    processes,
    terminate: () => Promise.resolve(send(pid, "SIGTERM")),
    async kill() {
      // What is started meanwhile is found in the next round.
      for (let left = await processes(); left.length > 0; left = await processes()) {
        for (const one of left) send(one, "SIGKILL");
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    },
  };
}

/** Live processes in a container's cgroup, in whichever hierarchy it was made. */
async function processesIn(podUid: string, containerId: string): Promise<number[]> {
  for (const root of ["/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified", "/sys/fs/cgroup"]) {
    const file = `${root}/kubepods/pod${podUid}/${containerId}/cgroup.procs`;
    const text = await Deno.readTextFile(file).catch(() => undefined);
    if (text !== undefined) return text.split("\n").filter((line) => line !== "").map(Number);
  }
  return [];
}

function send(pid: number, signal: Deno.Signal): void {
  try {
    Deno.kill(pid, signal);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
