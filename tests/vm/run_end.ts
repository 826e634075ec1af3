import { eventually } from "../support/eventually.ts";
import type { JobView } from "../support/gitea_api.ts";
import type { Stage } from "./stage.ts";

/** Resolves to the only job of a run when that has ended at Gitea, whatever its result. */
export async function runEnd(
  { gitea, repository }: Pick<Stage, "gitea" | "repository">,
  run: number,
  timeoutMs: number,
): Promise<JobView> {
  return await eventually(async () => {
    const { done, jobs: [job] } = await gitea.run(repository, run);
    return done && job;
  }, { what: `the end of run ${run}`, timeoutMs, everyMs: 150 });
}
