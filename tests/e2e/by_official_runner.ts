import type { GiteaApi } from "../support/gitea_api.ts";
import type { Peers } from "../support/peers.ts";
import { run, startProcess } from "../support/process.ts";
import type { JobRunner } from "./scenarios.ts";

/**
 * Registers the official runner and lets it run jobs by itself, with the labels that the product
 * declares: what the expectations were written against, and what the product is compared with.
 */
export async function startOfficialRunner(
  peers: Peers,
  api: GiteaApi,
  options: { readonly capacity: number; readonly signal: AbortSignal },
): Promise<JobRunner> {
  const folder = `${peers.folder}/official`;
  await Deno.mkdir(folder);
  const config = {
    log: { level: "info" },
    runner: {
      file: ".runner",
      capacity: options.capacity,
      fetch_interval: "500ms",
      fetch_interval_max: "1s",
    },
    cache: { enabled: false },
    host: { workdir_parent: `${folder}/work` },
  };
  await Deno.writeTextFile(`${folder}/config.yaml`, JSON.stringify(config));
  const binary = `${peers.bin}/gitea-runner`;
  // Go's own resolver does not know the short spelling of the loopback address; the system's does.
  const env = { GODEBUG: "netdns=cgo" };
  await run(binary, [
    "register",
    "--no-interactive",
    "--instance",
    peers.gitea.rootUrl,
    "--token",
    await api.registrationToken(),
    "--name",
    "official",
    "--labels",
    "self-hosted:host,pod:host,vm:host",
  ], { cwd: folder, env });
  const daemon = await startProcess(binary, ["daemon", "--config", "config.yaml"], {
    cwd: folder,
    env,
    logFile: `${folder}/log`,
    signal: options.signal,
  });
  return {
    name: "the official runner by itself",
    product: false,
    logFiles: [daemon.logFile],
    async [Symbol.asyncDispose]() {
      await daemon.stop();
      const [own] = (await api.runners()).filter((one) => one.name === "official");
      if (own !== undefined) await api.rest("DELETE", `/admin/actions/runners/${own.id}`);
    },
  };
}
