import type { Result } from "../../controller/model/reason.ts";
import { fromWireResult, toWireResult } from "../../controller/settle.ts";
import type { Clock } from "../../lib/clock.ts";
import { randomHex } from "../../lib/random_hex.ts";
import type {
  DeclareRequest,
  FetchTaskRequest,
  FetchTaskResponse,
  RegisterRequest,
  UpdateLogRequest,
  UpdateLogResponse,
  UpdateTaskRequest,
  UpdateTaskResponse,
} from "../../proto/gen/runner/v1/messages_pb.ts";
import {
  FetchTaskResponseSchema,
  Result as WireResult,
  TaskStateSchema,
  UpdateLogResponseSchema,
  UpdateTaskResponseSchema,
} from "../../proto/gen/runner/v1/messages_pb.ts";
import { create } from "../../proto/runtime.ts";
import { ForgeError } from "./error.ts";
import type { RunTemplate } from "./job_file.ts";
import type { ForgeMeta, ForgeStore, StoredJob, StoredRow, StoredRunner } from "./store.ts";
import { rowFromWire, stepFromWire, taskMessage } from "./wire.ts";

/** The forge's memory of jobs and runners, behind RunnerService. Throws {@link ForgeError}. */
export interface Forge {
  /** What `Register` asks for. */
  readonly registrationToken: string;
  register(request: RegisterRequest): StoredRunner;
  /** The runner of that uuid and token. */
  authenticate(uuid: string, token: string): StoredRunner;
  declare(runner: StoredRunner, request: DeclareRequest): void;
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

/** Ended jobs beyond this are forgotten, oldest first. */
const MAX_JOBS = 500;
/** A runner that declared `cancelling` is asked to stop if it was heard within this time. */
const HEARD_MS = 60_000;

/**
 * A small forge with the rules of Gitea's RunnerService as measured on 1.26 and 1.27: a job is
 * handed out once, to the runner whose labels cover all of `runs-on`, oldest first; nothing is
 * looked for when the versions are equal; the first final result, and the first value of an output,
 * win; log rows are taken in order, a gap stores nothing. What is answered has been stored before.
 */
export function createForge(options: ForgeOptions): Forge {
  const { store, clock } = options;
  const loaded = store.load();
  const meta: ForgeMeta = loaded?.meta ?? {
    tasksVersion: 1,
    lastId: { runner: 0, run: 0, job: 100, task: 0 },
    registrationToken: randomHex(20),
    signingKey: randomHex(32),
    runners: [],
  };
  if (loaded === undefined) store.saveMeta(meta);
  const jobs = new Map<number, StoredJob>();
  const logs = new Map<number, StoredRow[]>();
  for (const { job, rows } of loaded?.jobs ?? []) {
    jobs.set(job.jobId, job);
    logs.set(job.jobId, [...rows]);
  }

  const jobOf = (runner: StoredRunner, taskId: bigint, prefix = ""): StoredJob => {
    const id = Number(taskId);
    const job = id === 0 ? undefined : [...jobs.values()].find((job) => job.taskId === id);
    if (job === undefined) throw new ForgeError("Internal", `${prefix}resource does not exist`);
    if (job.runnerId !== runner.id) {
      throw new ForgeError("Internal", `${prefix}invalid runner for task`);
    }
    return job;
  };
  const end = (job: StoredJob, result: Result) => {
    job.result = result;
    job.cancelling = false;
    job.stoppedAt = clock.now();
    store.saveJob(job);
  };
  /** As Gitea ends a task by itself: steps that have not ended get its result. */
  const stop = (job: StoredJob, result: Result) => {
    const stoppedAt = clock.now();
    job.steps = job.steps.map((step) =>
      step.result === null ? { ...step, result, stoppedAt } : step
    );
    end(job, result);
  };
  const endSilentOnes = () => {
    const before = clock.now() - (options.zombieMs ?? 600_000);
    for (const job of jobs.values()) {
      if (job.taskId !== 0 && job.result === null && job.heardAt < before) stop(job, "failure");
    }
  };
  const forgetOldOnes = () => {
    for (const job of [...jobs.values()]) {
      if (jobs.size <= MAX_JOBS) return;
      if (job.result === null) continue;
      jobs.delete(job.jobId);
      logs.delete(job.jobId);
      store.deleteJob(job.jobId);
    }
  };
  const claim = (job: StoredJob, runner: StoredRunner) => {
    job.taskId = ++meta.lastId.task;
    job.runnerId = runner.id;
    job.token = randomHex(20);
    job.claimedAt = job.heardAt = clock.now();
    store.saveMeta(meta);
    store.saveJob(job);
  };

  return {
    registrationToken: meta.registrationToken,
    register(request) {
      if (request.token === "" || request.name === "") {
        throw new ForgeError("Internal", "missing runner token, name");
      }
      if (request.token !== meta.registrationToken) {
        throw new ForgeError("Internal", "runner registration token not found");
      }
      const runner: StoredRunner = {
        id: ++meta.lastId.runner,
        uuid: crypto.randomUUID(),
        token: randomHex(20),
        name: request.name,
        version: request.version,
        labels: request.labels,
        capabilities: request.capabilities,
      };
      meta.runners = [...meta.runners, runner];
      store.saveMeta(meta);
      return runner;
    },
    authenticate(uuid, token) {
      const runner = meta.runners.find((runner) => runner.uuid === uuid && runner.token === token);
      if (runner === undefined) throw new ForgeError("Unauthenticated", "unregistered runner");
      return runner;
    },
    declare(runner, request) {
      runner.version = request.version;
      runner.labels = request.labels;
      runner.capabilities = request.capabilities;
      store.saveMeta(meta);
    },
    fetchTask(runner, request) {
      endSilentOnes();
      const tasksVersion = BigInt(meta.tasksVersion);
      const none = create(FetchTaskResponseSchema, { tasksVersion });
      if (request.tasksVersion === tasksVersion) return none;
      const job = [...jobs.values()].find((job) =>
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
      const job = jobOf(runner, state.id, "update task: ");
      const result = fromWireResult(state.result);
      job.heardAt = clock.now();
      job.outputs = { ...request.outputs, ...job.outputs };
      if (job.result === null) {
        job.steps = state.steps.map(stepFromWire);
        if (result !== null) end(job, job.cancelling ? "cancelled" : result);
      }
      store.saveJob(job);
      const answered = job.cancelling ? WireResult.CANCELLED : toWireResult(job.result);
      return create(UpdateTaskResponseSchema, {
        state: create(TaskStateSchema, { id: state.id, result: answered }),
        sentOutputs: Object.keys(job.outputs),
      });
    },
    updateLog(runner, request) {
      const job = jobOf(runner, request.taskId);
      const rows = logs.get(job.jobId) ?? [];
      const index = Number(request.index);
      const answer = () => create(UpdateLogResponseSchema, { ackIndex: BigInt(rows.length) });
      job.heardAt = clock.now();
      if (index > rows.length) return answer();
      const fresh = request.rows.slice(rows.length - index).map(rowFromWire);
      if (fresh.length > 0) {
        if (job.sealed) throw new ForgeError("AlreadyExists", "log file has been archived");
        store.appendRows(job.jobId, fresh);
        rows.push(...fresh);
        logs.set(job.jobId, rows);
      }
      // As Gitea 1.26 does: a call that brings nothing new does not seal.
      job.sealed ||= request.noMore && fresh.length > 0;
      store.saveJob(job);
      return answer();
    },
    dispatch(runs) {
      const fresh = runs.flatMap((run) => {
        const runId = ++meta.lastId.run;
        return run.jobs.map((template) =>
          queued(template, { runId, jobId: ++meta.lastId.job, now: clock.now() })
        );
      });
      meta.tasksVersion += 1;
      // Ids first: after a crash in between they are burnt, not given twice.
      store.saveMeta(meta);
      for (const job of fresh) {
        jobs.set(job.jobId, job);
        store.saveJob(job);
      }
      forgetOldOnes();
      return fresh.map((job) => job.jobId);
    },
    cancel(jobId) {
      const job = jobs.get(jobId);
      if (job === undefined || job.result !== null) return;
      const runner = meta.runners.find((runner) => runner.id === job.runnerId);
      const asked = runner?.capabilities.includes("cancelling") === true &&
        clock.now() - job.heardAt < HEARD_MS;
      if (!asked) return stop(job, "cancelled");
      job.cancelling = true;
      store.saveJob(job);
    },
    jobs: () => [...jobs.values()],
    rows: (jobId) => logs.get(jobId) ?? [],
  };
}

function queued(
  template: RunTemplate["jobs"][number],
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
