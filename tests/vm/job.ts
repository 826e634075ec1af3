import assert from "node:assert/strict";
import type { AssignmentDetailView, BackendView } from "../../controller/views/views.ts";
import { eventually } from "../support/eventually.ts";
import type { JobView } from "../support/gitea_api.ts";
import type { VmController } from "./controller.ts";
import type { Guest, Platform } from "./platform.ts";
import { runEnd } from "./run_end.ts";
import type { Stage } from "./stage.ts";

/** The only job of a run, as Gitea, its sandboxes and the controller's API tell of it. */
export interface Job {
  readonly run: number;
  /** Its sandboxes in the order in which they were seen, gone ones included. */
  guests(): readonly Guest[];
  /** Resolves to its nth sandbox, from 1, when that has been seen. */
  guest(nth: number, timeoutMs?: number): Promise<Guest>;
  /** Its assignment; waits for its first sandbox. */
  view(): Promise<AssignmentDetailView>;
  /** Its log at Gitea; empty while there is none. */
  log(): Promise<string>;
  /** Resolves when the log fits; rejects with what it is. */
  logged(pattern: RegExp, timeoutMs: number): Promise<void>;
  /** Resolves to the job when it has ended at Gitea. */
  ended(timeoutMs: number): Promise<JobView>;
  /** Resolves when it holds no slot and has no sandbox any more. */
  slotFree(timeoutMs: number): Promise<void>;
}

/** Who takes part in a job. */
export interface JobWorld {
  readonly stage: Stage;
  readonly platform: Platform;
  readonly controller: VmController;
}

/** Starts the run of a workflow whose job has the key `key`, and whose file is named so. */
export async function startJob(
  { stage, platform, controller }: JobWorld,
  key: string,
): Promise<Job> {
  const { gitea, repository } = stage;
  const run = await gitea.dispatch(repository, `${key}.yaml`);
  const guests = () => platform.guests().filter(({ job }) => job === key);
  const guest = (nth: number, timeoutMs = 60_000) =>
    eventually(() => guests()[nth - 1], { what: `sandbox ${nth} of "${key}"`, timeoutMs });
  const id = async () => (await guest(1)).environment["CI_ASSIGNMENT_ID"];
  const log = async () => {
    const { jobs: [job] } = await gitea.run(repository, run);
    return job === undefined ? "" : await gitea.log(repository, job.id).catch(() => "");
  };
  return {
    run,
    guests,
    guest,
    log,
    view: async () =>
      await controller.get(`/api/v1/assignments/${await id()}`) as AssignmentDetailView,
    async logged(pattern, timeoutMs) {
      let last = "";
      await eventually(async () => pattern.test(last = await log()), {
        what: `${pattern} in the log of "${key}"`,
        timeoutMs,
        everyMs: 500,
      }).catch((cause) => assert.match(last, pattern, String(cause)));
    },
    ended: (timeoutMs) => runEnd(stage, run, timeoutMs),
    async slotFree(timeoutMs) {
      const assignment = await id();
      await eventually(async () => {
        const { slots } = await controller.get("/api/v1/backends/vm") as BackendView;
        return guests().every(({ goneAt }) => goneAt !== null) &&
          !slots.some(({ assignmentId }) => assignmentId === assignment);
      }, { what: `the slot and the sandboxes of "${key}"`, timeoutMs, everyMs: 100 });
    },
  };
}
