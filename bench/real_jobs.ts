import { createGiteaApi, type GiteaApi } from "../tests/support/gitea_api.ts";
import { type Peers, startPeers } from "../tests/support/peers.ts";

/** Real Gitea with a repository of workflows that write down when their steps ran. */
export interface RealJobs extends AsyncDisposable {
  readonly peers: Peers;
  readonly gitea: GiteaApi;
  /** Starts a run; `at` is when the call began, milliseconds since the epoch. */
  dispatch(workflow: string): Promise<{ readonly run: number; readonly at: number }>;
  /** When the steps of a run's jobs began, as the steps themselves wrote it, oldest first. */
  stepTimes(run: number): Promise<number[]>;
  /** Resolves when every job of the run is done; rejects when one failed, or after `ms`. */
  done(run: number, ms: number): Promise<void>;
}

/** Label of the reference's jobs; the controller's say `[self-hosted, pod]`. */
export const ALONE = "bench-alone";

/** Starts Gitea, and commits workflows `<what>-ours.yaml` and `<what>-alone.yaml` of one text each. */
export async function startRealJobs(
  workflows: Readonly<Record<string, (times: string) => string>>,
): Promise<RealJobs> {
  const peers = await startPeers({ which: ["gitea"], say });
  const times = `${peers.folder}/times`;
  await Deno.mkdir(times);
  // Jobs of either side write here, whatever their user.
  await Deno.chmod(times, 0o777);
  const { hostname, port } = peers.gitea.address;
  const gitea = createGiteaApi({
    url: `http://${hostname}:${port}`,
    user: peers.gitea.admin.name,
    password: peers.gitea.admin.password,
    token: peers.gitea.token,
  });
  const repository = `${gitea.user}/bench`;
  await gitea.createRepository("bench", { private: true });
  await gitea.commit(
    repository,
    Object.entries(workflows).flatMap(([what, text]) =>
      [["ours", "[self-hosted, pod]"], ["alone", `[${ALONE}]`]].map(([side, runsOn]) => ({
        path: `.gitea/workflows/${what}-${side}.yaml`,
        content: `on: workflow_dispatch\njobs:\n  job:\n    runs-on: ${runsOn}\n${text(times)}`,
      }))
    ),
  );
  return {
    peers,
    gitea,
    async dispatch(workflow) {
      const at = Date.now();
      return { run: await gitea.dispatch(repository, `${workflow}.yaml`), at };
    },
    async stepTimes(run) {
      const found: number[] = [];
      for await (const { name } of Deno.readDir(times)) {
        if (!name.startsWith(`${run}-`)) continue;
        found.push(Number(await Deno.readTextFile(`${times}/${name}`)));
      }
      return found.sort((a, b) => a - b);
    },
    async done(run, ms) {
      const end = performance.now() + ms;
      while (true) {
        const view = await gitea.run(repository, run);
        if (view.done) {
          const failed = view.jobs.filter(({ status }) => status !== "success");
          if (failed.length === 0) return;
          throw new Error(`Run ${run}: ${failed.length} of ${view.jobs.length} jobs failed`);
        }
        if (performance.now() > end) {
          const states = view.jobs.map(({ status }) => status).join(", ");
          throw new Error(`Wait for run ${run}: not done after ${ms} ms: ${states}`);
        }
        await pause(100);
      }
    },
    async [Symbol.asyncDispose]() {
      await peers[Symbol.asyncDispose]();
    },
  };
}

/** Waits; a bench has no fake clock. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Tells what is going on, on standard error, so that standard output is the report alone. */
export function say(line: string): void {
  Deno.stderr.writeSync(new TextEncoder().encode(`${line}\n`));
}
