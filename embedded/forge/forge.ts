import { fromWireResult, toWireResult } from "../../controller/settle.ts";
import type { Clock } from "../../lib/clock.ts";
import { randomHex } from "../../lib/random_hex.ts";
import {
  type FetchTaskRequest,
  type FetchTaskResponse,
  FetchTaskResponseSchema,
  Result as WireResult,
  TaskStateSchema,
  type UpdateLogRequest,
  type UpdateLogResponse,
  UpdateLogResponseSchema,
  type UpdateTaskRequest,
  type UpdateTaskResponse,
  UpdateTaskResponseSchema,
} from "../../proto/gen/runner/v1/messages_pb.ts";
import { create } from "../../proto/runtime.ts";
import { ForgeError } from "./error.ts";
import type { RunTemplate } from "./job_file.ts";
import { createJobs, queuedJob } from "./jobs.ts";
import { createRunners, type Runners } from "./runners.ts";
import type { ForgeMeta, ForgeStore, StoredJob, StoredRow, StoredRunner } from "./store.ts";
import { rowFromWire, stepFromWire, taskMessage } from "./wire.ts";

/** The forge's memory of jobs and runners, behind RunnerService. Throws {@link ForgeError}. */
export interface Forge extends Runners {
  /** What `Register` asks for. */
  readonly registrationToken: string;
  fetchTask(runner: StoredRunner, request: FetchTaskRequest): FetchTaskResponse;
  updateTask(runner: StoredRunner, request: UpdateTaskRequest): UpdateTaskResponse;
  updateLog(runner: StoredRunner, request: UpdateLogRequest): UpdateLogResponse;
  /** Queues the jobs of new runs, in order; returns their job ids. */
  dispatch(runs: readonly RunTemplate[]): number[];
  /** What the user's button does. */
  cancel(jobId: number): void;
  /** All jobs, oldest first; do not change them. */
  jobs(): readonly Readonly<StoredJob>[];
  /** A job's log. */
  rows(jobId: number): readonly StoredRow[];
}

/** Options of {@link createForge}. */
export interface ForgeOptions {
  readonly store: ForgeStore;
  readonly clock: Clock;
  /** Own URL as jobs see it, with a trailing slash. */
  readonly serverUrl: string;
  /** Silence after which a running task fails; Gitea's ZOMBIE_TASK_TIMEOUT. */
  readonly zombieMs?: number;
}

/** As Gitea's, of a task whose runner has gone silent. */
const ZOMBIE_MS = 600_000;
/** A runner that declared `cancelling` is asked to stop if it was heard within this time. */
const HEARD_MS = 60_000;

/**
 * A small forge with the rules of Gitea's RunnerService as measured on 1.26 and 1.27: a job is
 * handed out once, to the runner whose labels cover all of `runs-on`, oldest first; nothing is
 * looked for when the versions are equal; the first final result, and the first value of an output,
 * win; log rows are taken in order, a gap stores nothing. What is answered has been stored before.
 */
export function createForge(options: ForgeOptions): Forge {
  const { store, clock, zombieMs = ZOMBIE_MS } = options;
  const loaded = store.load();
  const meta = loaded?.meta ?? newMeta();
  if (loaded === undefined) store.saveMeta(meta);
  const jobs = createJobs(loaded?.jobs ?? [], { store, clock });
  const claim = (job: StoredJob, runner: StoredRunner) => {
    job.taskId = ++meta.lastId.task;
    job.runnerId = runner.id;
    job.token = randomHex(20);
    job.claimedAt = job.heardAt = clock.now();
    store.saveMeta(meta);
    jobs.save(job);
  };

  return {
    registrationToken: meta.registrationToken,
    ...createRunners({ meta, store }),
    fetchTask(runner, request) {
      jobs.endSilent(clock.now() - zombieMs);
      const tasksVersion = BigInt(meta.tasksVersion);
      const none = create(FetchTaskResponseSchema, { tasksVersion });
      if (request.tasksVersion === tasksVersion) return none;
      const job = jobs.all().find((job) =>
        job.taskId === 0 && job.result === null &&
        job.runsOn.every((label) => runner.labels.includes(label))
      );
      if (job === undefined) return none;
      claim(job, runner);
      const task = taskMessage(job, {
        serverUrl: options.serverUrl,
        signingKey: meta.signingKey,
        now: clock.now(),
      });
      return create(FetchTaskResponseSchema, { task, tasksVersion });
    },
    updateTask(runner, request) {
      const state = request.state ?? create(TaskStateSchema);
      const job = jobs.ofTask(runner, state.id, "update task: ");
      const result = fromWireResult(state.result);
      job.heardAt = clock.now();
      job.outputs = { ...request.outputs, ...job.outputs };
      if (job.result === null) {
        job.steps = state.steps.map(stepFromWire);
        if (result !== null) jobs.end(job, job.cancelling ? "cancelled" : result);
      }
      jobs.save(job);
      const answered = job.cancelling ? WireResult.CANCELLED : toWireResult(job.result);
      return create(UpdateTaskResponseSchema, {
        state: create(TaskStateSchema, { id: state.id, result: answered }),
        sentOutputs: Object.keys(job.outputs),
      });
    },
    updateLog(runner, request) {
      const job = jobs.ofTask(runner, request.taskId);
      const { length } = jobs.rows(job.jobId);
      const index = Number(request.index);
      job.heardAt = clock.now();
      if (index <= length) {
        const fresh = request.rows.slice(length - index).map(rowFromWire);
        if (fresh.length > 0) {
          if (job.sealed) throw new ForgeError("AlreadyExists", "log file has been archived");
          jobs.append(job, fresh);
        }
        // As Gitea 1.26 does: a call that brings nothing new does not seal.
        job.sealed ||= request.noMore && fresh.length > 0;
        jobs.save(job);
      }
      const ackIndex = BigInt(jobs.rows(job.jobId).length);
      return create(UpdateLogResponseSchema, { ackIndex });
    },
    dispatch(runs) {
      const now = clock.now();
      const fresh = runs.flatMap((run) => {
        const runId = ++meta.lastId.run;
        return run.jobs.map((template) =>
          queuedJob(template, { runId, jobId: ++meta.lastId.job, now })
        );
      });
      meta.tasksVersion += 1;
      // Ids first: after a crash in between they are burnt, not given twice.
      store.saveMeta(meta);
      jobs.add(fresh);
      return fresh.map((job) => job.jobId);
    },
    cancel(jobId) {
      const job = jobs.get(jobId);
      if (job === undefined || job.result !== null) return;
      const runner = meta.runners.find((runner) => runner.id === job.runnerId);
      const asked = runner?.capabilities.includes("cancelling") === true &&
        clock.now() - job.heardAt < HEARD_MS;
      if (!asked) return jobs.stop(job, "cancelled");
      job.cancelling = true;
      jobs.save(job);
    },
    jobs: jobs.all,
    rows: jobs.rows,
  };
}

/** A forge that nobody has registered at. */
function newMeta(): ForgeMeta {
  return {
    tasksVersion: 1,
    lastId: { runner: 0, run: 0, job: 100, task: 0 },
    registrationToken: randomHex(20),
    signingKey: randomHex(32),
    runners: [],
  };
}
