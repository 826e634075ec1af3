import { eventually } from "../support/eventually.ts";
import type { GiteaApi, RunView } from "../support/gitea_api.ts";
import type { Scenario } from "./expectations.ts";
import type { Grounds } from "./grounds.ts";

/** A run at Gitea. */
export interface StartedRun {
  readonly repository: string;
  readonly run: number;
  /** Whether a maintainer had to let it run. */
  readonly approved: boolean;
}

/** Starts the run of a scenario. Rejects with the call that Gitea refused. */
export async function startRun(grounds: Grounds, scenario: Scenario): Promise<StartedRun> {
  const { owner, stranger, closed, open } = grounds;
  switch (scenario.start.kind) {
    case "dispatch": {
      const run = await owner.dispatch(
        closed,
        `${scenario.workflow}.yaml`,
        scenario.start.inputs ?? {},
      );
      return { repository: closed, run, approved: false };
    }
    case "push":
      return await newRun(grounds, "push", async () => {
        await change(owner, open, { path: "pushed.txt", branch: "main" });
      });
    case "pull_request":
      return await newRun(grounds, "pull_request", async () => {
        await change(owner, open, { path: "proposal.txt", branch: "feature" });
        await openPullRequest(owner, { repository: open, head: "feature" });
      });
    case "fork_pull_request": {
      const fork = `${stranger.user}/open`;
      return await newRun(grounds, "pull_request", async () => {
        await stranger.rest("POST", `/repos/${open}/forks`, {});
        await change(stranger, fork, { path: "strange.txt", branch: "idea" });
        await openPullRequest(stranger, {
          repository: open,
          head: `${stranger.user}:idea`,
        });
      });
    }
  }
  scenario.start satisfies never;
}

const unfinished = new Set(["waiting", "running", "blocked"]);

/** Resolves when the run has ended, having been steered on the way. */
export async function awaitEnd(
  grounds: Grounds,
  scenario: Scenario,
  options: { readonly started: StartedRun; readonly timeoutMs: number },
): Promise<RunView> {
  const { repository, run } = options.started;
  const { owner } = grounds;
  if (scenario.steering === "cancel_running") {
    await eventually(() => firstRowIsIn(owner, options.started), {
      what: `the first row of "${scenario.name}"`,
      timeoutMs: options.timeoutMs,
      everyMs: 250,
    });
    await owner.cancel(repository, run);
  }
  if (scenario.steering === "cancel_waiting") {
    const waiting = await owner.run(repository, run);
    if (waiting.jobs.some((job) => job.status !== "waiting")) {
      throw new Error(
        `Cancel "${scenario.name}" while it waits: it is ${JSON.stringify(waiting.jobs)}`,
      );
    }
    await owner.cancel(repository, run);
  }
  const ended = await awaitDone(grounds, scenario, options);
  if (scenario.steering !== "rerun") return ended;
  await owner.rest("POST", `/repos/${repository}/actions/runs/${run}/rerun`);
  return await awaitDone(grounds, scenario, options);
}

async function awaitDone(
  grounds: Grounds,
  scenario: Scenario,
  options: { readonly started: StartedRun; readonly timeoutMs: number },
): Promise<RunView> {
  const { repository, run } = options.started;
  return await eventually(async () => {
    const view = await grounds.owner.run(repository, run);
    // Gitea calls a run done while jobs that need a failed one are still to be judged.
    return view.done && view.jobs.every((job) => !unfinished.has(job.status)) && view;
  }, { what: `the end of "${scenario.name}"`, timeoutMs: options.timeoutMs, everyMs: 500 });
}

async function firstRowIsIn(owner: GiteaApi, started: StartedRun): Promise<boolean> {
  const { repository, run } = started;
  for (const job of (await owner.run(repository, run)).jobs) {
    if (job.status !== "running") continue;
    const steps = await owner.steps(repository, run, job.id);
    // The first is Gitea's own "Set up job"; a frame of four rows stands above a step's own.
    if ((steps[1]?.lines.length ?? 0) > 4) return true;
  }
  return false;
}

/** Does `make` and resolves to the run that came of it; approved if it needed that. */
async function newRun(
  grounds: Grounds,
  event: string,
  make: () => Promise<void>,
): Promise<StartedRun> {
  const { owner, open } = grounds;
  const before = new Set((await owner.runs(open)).map((run) => run.id));
  await make();
  const { id } = await eventually(
    async () => (await owner.runs(open)).find((run) => run.event === event && !before.has(run.id)),
    { what: `a run of event "${event}"`, timeoutMs: 30_000, everyMs: 200 },
  );
  const view = await owner.run(open, id);
  if (view.needsApproval) await owner.approve(open, id);
  return { repository: open, run: id, approved: view.needsApproval };
}

async function change(
  api: GiteaApi,
  repository: string,
  file: { readonly path: string; readonly branch: string },
): Promise<void> {
  await api.rest("POST", `/repos/${repository}/contents/${file.path}`, {
    branch: "main",
    ...file.branch === "main" ? {} : { new_branch: file.branch },
    message: `write ${file.path}`,
    content: btoa(`${file.path}\n`),
  });
}

async function openPullRequest(
  api: GiteaApi,
  from: { readonly repository: string; readonly head: string },
): Promise<void> {
  await api.rest("POST", `/repos/${from.repository}/pulls`, {
    base: "main",
    head: from.head,
    title: `take ${from.head}`,
  });
}
