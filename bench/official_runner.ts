import type { GiteaApi } from "../tests/support/gitea_api.ts";
import type { Peers } from "../tests/support/peers.ts";
import { run, type RunningProcess, startProcess } from "../tests/support/process.ts";

/**
 * The official runner by itself, with its default timings: the reference. Its label is `label`, so
 * that it and the controller never take each other's jobs. Ends when disposed.
 */
export async function startOfficialRunner(
  deps: { readonly peers: Peers; readonly gitea: GiteaApi },
  options: { readonly label: string; readonly capacity: number },
): Promise<RunningProcess> {
  const { peers, gitea } = deps;
  const folder = `${peers.folder}/${options.label}`;
  await Deno.mkdir(folder);
  const config = {
    log: { level: "info" },
    runner: { file: ".runner", capacity: options.capacity },
    cache: { enabled: false },
    host: { workdir_parent: `${folder}/work` },
  };
  // JSON is YAML.
  await Deno.writeTextFile(`${folder}/config.yaml`, JSON.stringify(config));
  // By address: the runner, left alone, would look the spelling in ROOT_URL up as a name.
  const { hostname, port } = peers.gitea.address;
  const program = `${peers.bin}/gitea-runner`;
  await run(program, [
    "register",
    "--no-interactive",
    ...["--instance", `http://${hostname}:${port}`],
    ...["--token", await gitea.registrationToken()],
    ...["--name", options.label],
    ...["--labels", `${options.label}:host`],
  ], { cwd: folder, signal: AbortSignal.timeout(30_000) });
  return await startProcess(program, ["daemon", "--config", "config.yaml"], {
    cwd: folder,
    logFile: `${folder}/runner.log`,
  });
}
