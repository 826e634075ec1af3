import assert from "node:assert/strict";
import { register } from "../../clients/gitea/register.ts";
import { createGitea } from "../../clients/gitea/runner_service.ts";
import { type Gitea, GiteaError, type GiteaErrorCode } from "../../controller/gitea.ts";
import { checkRegistration } from "../../controller/scheduler.ts";
import { systemClock } from "../../lib/clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { Secret } from "../../lib/secret.ts";
import {
  LogRowSchema,
  Result,
  StepStateSchema,
  type Task,
  TaskStateSchema,
} from "../../proto/gen/runner/v1/messages_pb.ts";
import { create, timestampNow } from "../../proto/runtime.ts";
import { call } from "../support/calls.ts";

/** A server that should behave as Gitea does. */
export interface GiteaSubject {
  readonly url: string;
  readonly fetch?: typeof globalThis.fetch;
  registrationToken(): Promise<string>;
  /** Queues one job with one `run:` step and `runs-on: [self-hosted, pod]`. */
  queueJob(): Promise<{ cancel(): Promise<void> }>;
}

/** One thing that the `Gitea` port promises, checked on a server. */
export interface GiteaCase {
  readonly name: string;
  run(subject: GiteaSubject): Promise<void>;
}

function transportOf({ fetch, url }: GiteaSubject) {
  return fetch === undefined ? { url } : { url, fetch };
}

async function newRunner(subject: GiteaSubject, labels: readonly string[] = []) {
  const transport = transportOf(subject);
  const runner = await register({
    registrationToken: new Secret(await subject.registrationToken()),
    name: `contract-${crypto.randomUUID().slice(0, 8)}`,
    labels,
    ...transport,
  }, call);
  const { uuid, token } = runner;
  return { runner, gitea: createGitea({ uuid, token, ...transport }) };
}

const LABELS = ["self-hosted", "pod"];

/** A runner that was handed a fresh task. */
async function withTask(
  subject: GiteaSubject,
  use: (
    gitea: Gitea,
    task: Task,
    job: { cancel(): Promise<void> },
  ) => Promise<void>,
): Promise<void> {
  const { gitea } = await newRunner(subject);
  await using _ = gitea;
  await gitea.declare({ version: "contract", labels: LABELS, capabilities: [] }, call);
  const job = await subject.queueJob();
  const { task } = await gitea.fetchTask(0n, call);
  assert(task !== undefined, "no task was handed out");
  await use(gitea, task, job);
  await gitea.updateTask({ state: state(task.id, Result.FAILURE) }, call).catch(() => {});
}

function state(id: bigint, result: Result) {
  return create(TaskStateSchema, {
    id,
    result,
    startedAt: timestampNow(),
    steps: [create(StepStateSchema, { id: 0n, result, startedAt: timestampNow() })],
  });
}

const rows = (...contents: readonly string[]) =>
  contents.map((content) => create(LogRowSchema, { time: timestampNow(), content }));

function rejectsWith(code: GiteaErrorCode, promise: Promise<unknown>): Promise<void> {
  return assert.rejects(promise, (error) => {
    assert(error instanceof GiteaError, String(error));
    assert.equal(error.code, code, error.message);
    return true;
  });
}

/** Every case; they may run one after the other on one server. */
export const GITEA_CASES: readonly GiteaCase[] = [
  {
    name: "register() tells a bad registration token from a server that is no Gitea",
    async run(subject) {
      const registrationToken = new Secret("0".repeat(40));
      const options = { ...transportOf(subject), name: "x", labels: [], registrationToken };
      await rejectsWith("bad_registration_token", register(options, call));
      const nowhere = `${subject.url}/nowhere`;
      await rejectsWith("not_gitea", register({ ...options, url: nowhere }, call));
    },
  },
  {
    name: "every method rejects with unauthenticated when the runner is not registered",
    async run(subject) {
      const { runner } = await newRunner(subject);
      const wrong = {
        ...transportOf(subject),
        uuid: runner.uuid,
        token: new Secret("1".repeat(40)),
      };
      await using gitea = createGitea(wrong);
      const update = { taskId: 1n, index: 0n, rows: [], noMore: false };
      const declaration = { version: "x", labels: [], capabilities: [] };
      await rejectsWith("unauthenticated", gitea.declare(declaration, call));
      await rejectsWith("unauthenticated", gitea.fetchTask(0n, call));
      await rejectsWith("unauthenticated", gitea.updateLog(update, call));
      await rejectsWith("unauthenticated", gitea.updateTask({ state: state(1n, 0) }, call));
    },
  },
  {
    name: "checkRegistration() accepts a registered runner and refuses another at once",
    async run(subject) {
      const { gitea, runner } = await newRunner(subject);
      await using _ = gitea;
      const deps = { clock: systemClock, logger: silentLogger, random: Math.random };
      await checkRegistration({ ...deps, gitea }, call.signal);
      await using other = createGitea({
        ...transportOf(subject),
        uuid: runner.uuid,
        token: new Secret("x"),
      });
      await rejectsWith(
        "unauthenticated",
        checkRegistration({ ...deps, gitea: other }, call.signal),
      );
    },
  },
  {
    name: "fetchTask() hands a job out once, only to a runner whose labels cover runs-on",
    async run(subject) {
      const { gitea } = await newRunner(subject);
      await using _ = gitea;
      const declare = (labels: readonly string[]) =>
        gitea.declare({ version: "contract", labels, capabilities: [] }, call);
      await subject.queueJob();
      for (const labels of [[], ["self-hosted"], ["pod:host", "self-hosted:host"]]) {
        await declare(labels);
        assert.equal((await gitea.fetchTask(0n, call)).task, undefined);
      }
      await declare([...LABELS, "vm"]);
      const { task } = await gitea.fetchTask(0n, call);
      assert(task !== undefined);
      assert.equal((await gitea.fetchTask(0n, call)).task, undefined);
      await gitea.updateTask({ state: state(task.id, Result.SUCCESS) }, call);
    },
  },
  {
    name: "fetchTask() looks for nothing when the version is the server's, and for all with 0",
    async run(subject) {
      const { gitea } = await newRunner(subject);
      await using _ = gitea;
      await gitea.declare({ version: "contract", labels: LABELS, capabilities: [] }, call);
      await subject.queueJob();
      await subject.queueJob();
      const first = await gitea.fetchTask(0n, call);
      assert(first.task !== undefined);
      const { tasksVersion } = await gitea.fetchTask(first.tasksVersion, call);
      const idle = await gitea.fetchTask(tasksVersion, call);
      assert.equal(idle.task, undefined, "a task although the versions are equal");
      assert(tasksVersion > 0n);
      const second = await gitea.fetchTask(0n, call);
      assert(second.task !== undefined && second.task.id !== first.task.id);
      for (const { id } of [first.task, second.task]) {
        await gitea.updateTask({ state: state(id, Result.SUCCESS) }, call);
      }
    },
  },
  {
    name: "fetchTask() answers with the workflow of one job, the context and the job's number",
    run: (subject) =>
      withTask(subject, (_gitea, task) => {
        const workflow = new TextDecoder().decode(task.workflowPayload);
        const context = task.context ?? {};
        assert.match(workflow, /runs-on:/);
        assert.match(String(context.repository), /^[\w.-]+\/[\w.-]+$/);
        assert(workflow.includes(`${context.job}:`));
        assert.match(String(context.run_id), /^\d+$/);
        assert.match(String(context.server_url), /^http.*\/$/);
        const payload = String(context.gitea_runtime_token).split(".")[1] ?? "";
        const claims: unknown = JSON.parse(
          new TextDecoder().decode(Uint8Array.fromBase64(payload, { alphabet: "base64url" })),
        );
        assert(typeof claims === "object" && claims !== null && "JobID" in claims);
        assert("TaskID" in claims && claims.TaskID === Number(task.id));
        return Promise.resolve();
      }),
  },
  {
    name: "updateLog() acknowledges rows in order, stores nothing over a gap and takes a resend",
    run: (subject) =>
      withTask(subject, async (gitea, task) => {
        const send = async (index: bigint, contents: readonly string[], noMore = false) => {
          const update = { taskId: task.id, index, rows: rows(...contents), noMore };
          return (await gitea.updateLog(update, call)).ackIndex;
        };
        assert.equal(await send(0n, []), 0n);
        assert.equal(await send(0n, ["a", "b"]), 2n);
        assert.equal(await send(0n, ["a", "b"]), 2n);
        assert.equal(await send(5n, ["f"]), 2n);
        assert.equal(await send(5n, ["f"], true), 2n);
        assert.equal(await send(1n, ["b", "c"]), 3n);
        // Gitea 1.26 seals only if a row comes along.
        assert.equal(await send(3n, ["d"], true), 4n);
        assert.equal(await send(3n, ["d"], true), 4n);
        assert.equal(await send(4n, [], true), 4n);
        await rejectsWith("log_sealed", send(4n, ["e"]));
      }),
  },
  {
    name: "updateTask() keeps the first final result and the first value of an output",
    run: (subject) =>
      withTask(subject, async (gitea, task) => {
        const beat = await gitea.updateTask({
          state: state(task.id, Result.UNSPECIFIED),
          outputs: { a: "1" },
        }, call);
        assert.equal(beat.state?.result, Result.UNSPECIFIED);
        assert.deepEqual(beat.sentOutputs, ["a"]);
        const final = await gitea.updateTask({
          state: state(task.id, Result.SUCCESS),
          outputs: { a: "2", b: "3" },
        }, call);
        assert.equal(final.state?.result, Result.SUCCESS);
        assert.deepEqual([...final.sentOutputs].sort(), ["a", "b"]);
        const late = await gitea.updateTask({ state: state(task.id, Result.FAILURE) }, call);
        assert.equal(late.state?.result, Result.SUCCESS);
      }),
  },
  {
    name: "updates reject with foreign_task and not_found when the task is not ours or not there",
    run: (subject) =>
      withTask(subject, async (_gitea, task) => {
        const { gitea: other } = await newRunner(subject);
        await using _ = other;
        const update = { taskId: task.id, index: 0n, rows: rows("x"), noMore: false };
        await rejectsWith("foreign_task", other.updateTask({ state: state(task.id, 0) }, call));
        await rejectsWith("foreign_task", other.updateLog(update, call));
        for (const id of [0n, 987_654_321n]) {
          await rejectsWith("not_found", other.updateTask({ state: state(id, 0) }, call));
          await rejectsWith("not_found", other.updateLog({ ...update, taskId: id }, call));
        }
      }),
  },
  {
    name: "updateTask() answers CANCELLED when a user has cancelled the job",
    run: (subject) =>
      withTask(subject, async (gitea, task, job) => {
        await job.cancel();
        const answer = await gitea.updateTask({ state: state(task.id, 0) }, call);
        assert.equal(answer.state?.result, Result.CANCELLED);
      }),
  },
  {
    name: "a call rejects with the caller's reason when the signal has aborted",
    async run(subject) {
      const { gitea } = await newRunner(subject);
      await using _ = gitea;
      const reason = new DOMException("Enough", "AbortError");
      const signal = AbortSignal.abort(reason);
      await assert.rejects(gitea.fetchTask(0n, { signal }), (error) => error === reason);
    },
  },
];
