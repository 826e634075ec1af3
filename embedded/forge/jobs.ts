import type { Result } from "../../controller/model/reason.ts";
import type { Clock } from "../../lib/clock.ts";
import { ForgeError } from "./error.ts";
import type { JobTemplate } from "./job_file.ts";
import type { ForgeStore, Stored, StoredJob, StoredRow, StoredRunner } from "./store.ts";

/** The forge's jobs with their logs, in memory and in the store. */
export interface Jobs {
  /** Oldest first. */
  all(): StoredJob[];
  get(jobId: number): StoredJob | undefined;
  rows(jobId: number): readonly StoredRow[];
  /** The job of a task that is this runner's. Throws {@link ForgeError}, worded after `prefix`. */
  ofTask(runner: StoredRunner, taskId: bigint, prefix?: string): StoredJob;
  /** Adds new ones; of those that have ended only the newest are kept. */
  add(jobs: readonly StoredJob[]): void;
  /** Writes down what was changed of it. */
  save(job: StoredJob): void;
  append(job: StoredJob, rows: readonly StoredRow[]): void;
  /** Ends a job as its runner says. */
  end(job: StoredJob, result: Result): void;
  /** Ends it as Gitea does by itself: steps that have not ended get its result. */
  stop(job: StoredJob, result: Result): void;
  /** Fails running ones that nobody has spoken of since `before`. */
  endSilent(before: number): void;
}

/** Ended jobs beyond this are forgotten, oldest first. */
const MAX_JOBS = 500;

/** Makes {@link Jobs} of what the store held. */
export function createJobs(
  stored: Stored["jobs"],
  { store, clock }: { readonly store: ForgeStore; readonly clock: Clock },
): Jobs {
  const jobs = new Map(stored.map(({ job }) => [job.jobId, job]));
  const logs = new Map(stored.map(({ job, rows }) => [job.jobId, [...rows]]));

  const forgetOldOnes = () => {
    for (const job of [...jobs.values()]) {
      if (jobs.size <= MAX_JOBS) return;
      if (job.result === null) continue;
      jobs.delete(job.jobId);
      logs.delete(job.jobId);
      store.deleteJob(job.jobId);
    }
  };
  const end = (job: StoredJob, result: Result) => {
    job.result = result;
    job.cancelling = false;
    job.stoppedAt = clock.now();
    store.saveJob(job);
  };
  const stop = (job: StoredJob, result: Result) => {
    const stoppedAt = clock.now();
    job.steps = job.steps.map((step) =>
      step.result === null ? { ...step, result, stoppedAt } : step
    );
    end(job, result);
  };
  return {
    all: () => [...jobs.values()],
    get: (jobId) => jobs.get(jobId),
    rows: (jobId) => logs.get(jobId) ?? [],
    ofTask(runner, taskId, prefix = "") {
      const id = Number(taskId);
      const job = id === 0 ? undefined : [...jobs.values()].find((job) => job.taskId === id);
      if (job === undefined) throw new ForgeError("Internal", `${prefix}resource does not exist`);
      if (job.runnerId !== runner.id) {
        throw new ForgeError("Internal", `${prefix}invalid runner for task`);
      }
      return job;
    },
    add(fresh) {
      for (const job of fresh) {
        jobs.set(job.jobId, job);
        store.saveJob(job);
      }
      forgetOldOnes();
    },
    save: (job) => store.saveJob(job),
    append({ jobId }, fresh) {
      store.appendRows(jobId, fresh);
      const rows = logs.get(jobId) ?? [];
      rows.push(...fresh);
      logs.set(jobId, rows);
    },
    end,
    stop,
    endSilent(before) {
      for (const job of jobs.values()) {
        if (job.taskId !== 0 && job.result === null && job.heardAt < before) stop(job, "failure");
      }
    },
  };
}

/** A job as it waits for a runner. */
export function queuedJob(
  template: JobTemplate,
  ids: { readonly runId: number; readonly jobId: number; readonly now: number },
): StoredJob {
  return {
    ...template,
    runId: ids.runId,
    jobId: ids.jobId,
    queuedAt: ids.now,
    taskId: 0,
    runnerId: 0,
    token: "",
    claimedAt: 0,
    heardAt: 0,
    stoppedAt: 0,
    cancelling: false,
    result: null,
    steps: [],
    outputs: {},
    sealed: false,
  };
}
