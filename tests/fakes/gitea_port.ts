import { type Gitea, GiteaError } from "../../controller/gitea.ts";
import { create } from "../../proto/runtime.ts";
import {
  FetchTaskResponseSchema,
  Result,
  type Task,
  type TaskState,
  TaskStateSchema,
  UpdateLogResponseSchema,
  UpdateTaskResponseSchema,
} from "../../proto/gen/runner/v1/messages_pb.ts";

/** One task as Gitea keeps it. */
export interface KeptTask {
  rows: string[];
  sealed: boolean;
  result: Result;
  /** The last state that was sent. */
  state: TaskState | null;
  /** Updates with result 0. */
  heartbeats: number;
}

/** Gitea's RunnerService in memory, behind the port; for tests of the controller's own parts. */
export interface FakeGitea extends Gitea {
  readonly tasks: Map<bigint, KeptTask>;
  /** Hands this one out at the next fetch. */
  queue(task: Task): void;
  /** A user cancels the task. */
  cancel(id: bigint): void;
  /** Every call fails with this while it is set. */
  down: GiteaError | null;
}

/** Makes a {@link FakeGitea}. */
export function createFakeGitea(): FakeGitea {
  const tasks = new Map<bigint, KeptTask>();
  const waiting: Task[] = [];
  let version = 1n;
  const kept = (id: bigint): KeptTask => {
    const task = tasks.get(id);
    if (task === undefined) throw new GiteaError("not_found", `Update task ${id}: not there`);
    return task;
  };
  const fake: FakeGitea = {
    tasks,
    down: null,
    queue(task) {
      waiting.push(task);
      version++;
    },
    cancel(id) {
      kept(id).result = Result.CANCELLED;
    },
    declare() {
      if (fake.down !== null) return Promise.reject(fake.down);
      return Promise.resolve({ serverCapabilities: null });
    },
    // deno-lint-ignore require-await
    async fetchTask(tasksVersion) {
      if (fake.down !== null) throw fake.down;
      const task = tasksVersion === version ? undefined : waiting.shift();
      if (task === undefined) return create(FetchTaskResponseSchema, { tasksVersion: version });
      tasks.set(task.id, add());
      return create(FetchTaskResponseSchema, { task, tasksVersion: version });
    },
    // deno-lint-ignore require-await
    async updateTask({ state }) {
      if (fake.down !== null) throw fake.down;
      const task = kept(state.id);
      if (state.result === Result.UNSPECIFIED) task.heartbeats++;
      else if (task.result === Result.UNSPECIFIED) task.result = state.result;
      task.state = state;
      return create(UpdateTaskResponseSchema, {
        state: create(TaskStateSchema, { id: state.id, result: task.result }),
      });
    },
    // deno-lint-ignore require-await
    async updateLog({ taskId, index, rows, noMore }) {
      if (fake.down !== null) throw fake.down;
      const task = kept(taskId);
      if (task.sealed && rows.length > 0) throw new GiteaError("log_sealed", "Add rows: sealed");
      const have = BigInt(task.rows.length);
      if (index <= have) {
        const fresh = rows.slice(Number(have - index));
        for (const row of fresh) task.rows.push(row.content);
        // As Gitea 1.26 does: a call that brings nothing new does not seal.
        if (noMore && fresh.length > 0) task.sealed = true;
      }
      return create(UpdateLogResponseSchema, { ackIndex: BigInt(task.rows.length) });
    },
  };
  return fake;
}

/** A task that has just been handed out. */
export function add(): KeptTask {
  return { rows: [], sealed: false, result: Result.UNSPECIFIED, state: null, heartbeats: 0 };
}
