import { bundleGate } from "../../deploy/bundle_gate.ts";
import { type ImageConfig, imageConfig, parseDockerfile } from "./kube_dockerfile.ts";
import { run } from "./process.ts";

/** An image as the test kubelet has it: files over this machine's own, and how it is run. */
export interface Image {
  readonly layer: string;
  /** Folders of this machine that are part of it, never to be written. */
  readonly parts: readonly { readonly source: string; readonly target: string }[];
  readonly config: ImageConfig;
}

const ROOT = new URL("../../", import.meta.url).pathname;
const USER = 2000;

/**
 * The controller's image as `deploy/Dockerfile` says how it is run: the sources are this repository, and
 * the packages those that Deno has here.
 */
export async function layControllerImage(bin: string, layer: string): Promise<Image> {
  const config = imageConfig(parseDockerfile(await Deno.readTextFile(`${ROOT}deploy/Dockerfile`)));
  await Deno.mkdir(`${layer}/usr/local/bin`, { recursive: true });
  await Deno.copyFile(`${bin}/deno`, `${layer}/usr/local/bin/deno`);
  await Deno.chmod(`${layer}/usr/local/bin/deno`, 0o755);
  const { stdout } = await run(Deno.execPath(), ["info", "--json"]);
  const { denoDir } = JSON.parse(stdout) as { readonly denoDir: string };
  return {
    layer,
    parts: [
      { source: ROOT.replace(/\/$/, ""), target: config.workingDirectory },
      { source: denoDir, target: config.environment["DENO_DIR"] ?? "" },
    ],
    config,
  };
}

/**
 * Lays the files of `deploy/executor.Dockerfile` out, with its modes and owners; how it is run is read
 * from that file. What its packages would bring is this machine's own.
 */
export async function layExecutorImage(bin: string, layer: string): Promise<Image> {
  const config = imageConfig(parseDockerfile(
    await Deno.readTextFile(`${ROOT}deploy/executor.Dockerfile`),
  ));
  const cache = `${layer}${config.environment["DENO_DIR"]}`;
  for (const folder of ["usr/local/bin", "opt/identity-gate", "etc/ssl/certs"]) {
    await Deno.mkdir(`${layer}/${folder}`, { recursive: true });
  }
  for (
    const [name, mode] of [["gitea-runner", 0o711], ["deno", 0o711], [
      "spire-agent",
      0o755,
    ]] as const
  ) {
    await Deno.copyFile(`${bin}/${name}`, `${layer}/usr/local/bin/${name}`);
    await Deno.chmod(`${layer}/usr/local/bin/${name}`, mode);
  }
  await bundleGate(`${layer}/opt/identity-gate/gate.mjs`);
  await Deno.chmod(`${layer}/opt/identity-gate/gate.mjs`, 0o644);
  for (const folder of ["home/runner", "run/identity-gate"]) {
    await Deno.mkdir(`${layer}/${folder}`, { recursive: true });
    await Deno.chown(`${layer}/${folder}`, USER, USER);
  }
  await Deno.symlink("/run/identity-gate/gate.pem", `${layer}/etc/ssl/certs/zz-identity-gate.pem`);
  for (
    const [file, line] of [
      ["passwd", `runner:x:${USER}:${USER}::/home/runner:/bin/bash`],
      ["group", `runner:x:${USER}:`],
    ] as const
  ) {
    const text = await Deno.readTextFile(`/etc/${file}`);
    await Deno.writeTextFile(`${layer}/etc/${file}`, `${text.trimEnd()}\n${line}\n`);
  }
  await fillCodeCache(layer, cache, config);
  return { layer, parts: [], config };
}

/** The Dockerfile's RUN of the gate without a launch environment: it ends with exit code 2. */
async function fillCodeCache(layer: string, cache: string, config: ImageConfig): Promise<void> {
  await Deno.mkdir(cache, { recursive: true });
  const script = String.raw`
set -euo pipefail
layer=$1 cache=$2 deno_dir=$3; shift 3
at=$(mktemp -d)
mount -t tmpfs tmpfs "$at"
mkdir "$at/upper" "$at/work" "$at/rootfs"
mount -t overlay -o "lowerdir=$layer:/,upperdir=$at/upper,workdir=$at/work" overlay "$at/rootfs"
mount --rbind /dev "$at/rootfs/dev"
mount --rbind /proc "$at/rootfs/proc"
mount --bind "$cache" "$at/rootfs$deno_dir"
for _ in 1 2; do
  chroot "$at/rootfs" env -i PATH=/usr/local/bin:/usr/bin:/bin DENO_DIR="$deno_dir" DENO_NO_UPDATE_CHECK=1 "$@" 2>/dev/null || [ "$?" = 2 ]
done
`;
  const denoDir = config.environment["DENO_DIR"] ?? "";
  await run("unshare", [
    "--mount",
    "--propagation",
    "private",
    "bash",
    "-c",
    script,
    "fill",
    layer,
    cache,
    denoDir,
    ...config.entrypoint,
  ]);
}
