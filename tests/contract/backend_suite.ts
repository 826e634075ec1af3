import assert from "node:assert/strict";
import {
  type Backend,
  BackendError,
  type Executor,
  type ExecutorChange,
  type ExecutorSpec,
} from "../../controller/backend.ts";
import type { AssignmentInfo } from "../../controller/model/assignment_info.ts";
import {
  assignmentIdOf,
  type BackendName,
  type ExecutorName,
  executorName,
  type Instance,
  parseTaskId,
} from "../../controller/model/ids.ts";
import { buildMetadata } from "../../controller/model/metadata.ts";
import { call } from "../support/calls.ts";
import { eventually } from "../support/eventually.ts";
import { rejectsWith } from "../support/rejections.ts";

/** A backend with the means to provoke what the suite looks at. Disposing removes everything. */
export interface BackendWorld extends AsyncDisposable {
  readonly backend: Backend;
  /** Another backend object on the same executors, as after a restart of the controller. */
  reopen(): Promise<Backend>;
  /** Makes the executor print a line and end by itself. */
  end(name: ExecutorName, how: { readonly code: number; readonly line: string }): Promise<void>;
  /** Damages what the backend keeps about the executor, so that it cannot be read. */
  corrupt(name: ExecutorName): Promise<void>;
  /** The SPIFFE ID that this executor would be given now; null if none. */
  boundTo(name: ExecutorName): Promise<string | null>;
  /** Somebody deletes what gives it its SPIFFE ID. Undefined where nobody can. */
  readonly unbind?: (name: ExecutorName) => Promise<void>;
  /** The environment that its program sees. */
  environmentOf(name: ExecutorName): Promise<Readonly<Record<string, string>>>;
  /** The next create is done, but its answer is lost. Undefined where answers cannot be lost. */
  readonly loseNextAnswer?: () => void;
  /**
   * What its server keeps of an end, `everything` by default. OpenSandbox has no last lines
   * (`exit_code`), and under Kubernetes tells of failures only, by a bare word (`failure`).
   */
  readonly tellsEnd?: "everything" | "exit_code" | "failure";
}

/** Promises that a backend may be without; none of the others may. */
export type Unpromised = "lost answers" | "bindings that can be seen";

const PREFIX = "ci.example.org";
const INSTANCE = "0011223344" as Instance;
const CAPABILITY = "capability-0123456789abcdef";

/** What the suite asks a backend to make for a task. */
export function specOf(task: string, backend: BackendName): ExecutorSpec {
  const taskId = parseTaskId(task);
  assert.ok(taskId !== undefined);
  const spiffeId = `spiffe://example.org/ci/owner/repo/job-${task}`;
  const assignment: AssignmentInfo = {
    id: assignmentIdOf(taskId),
    taskId,
    backend,
    identity: { spiffeId, fork: false },
    repository: "owner/repo",
    job: `job-${task}`,
    runId: null,
    giteaUrl: null,
    serverUrl: null,
  };
  return {
    name: executorName(INSTANCE, assignment.id),
    metadata: buildMetadata(assignment, { prefix: PREFIX, instance: INSTANCE }),
    environment: {
      CI_ASSIGNMENT_ID: assignment.id,
      CI_RUNNER_CAPABILITY: CAPABILITY,
      CI_SPIFFE_ID: spiffeId,
      ODD_VALUE: 'it\'s "odd" $(echo no) `echo no`\nsecond line',
    },
    assignment,
  };
}

/** What every backend promises; runs on the fake and on the real ones. */
export function backendContract(
  name: string,
  setup: () => Promise<BackendWorld>,
  options: {
    readonly ignore?: boolean;
    readonly backend?: BackendName;
    /** What does not exist for this backend, and is not tested. */
    readonly without?: readonly Unpromised[];
  } = {},
): void {
  const kind = options.backend ?? "pod";
  const test = (
    promise: string,
    run: (world: BackendWorld, backend: Backend) => Promise<void>,
    needs?: Unpromised,
  ) => {
    if (needs !== undefined && options.without?.includes(needs)) return;
    Deno.test({
      name: `${name}: ${promise}`,
      ignore: options.ignore ?? false,
      async fn() {
        await using world = await setup();
        await run(world, world.backend);
      },
    });
  };

  test("find() is undefined and list() is empty when nothing was made", async (_, backend) => {
    assert.equal(backend.name, kind);
    assert.equal(await backend.find(specOf("1", kind).name, call), undefined);
    assert.deepEqual(await backend.list(call), []);
  });

  test(
    "create() makes an executor that find() and list() show as it was asked for",
    async (_, backend) => {
      const spec = specOf("1", kind);
      const made = await backend.create(spec, call);
      assert.equal(made.name, spec.name);
      assert.notEqual(made.uid, "");
      assert.deepEqual(made.metadata, spec.metadata);
      assert.equal(made.ended, null);
      assert.equal(made.terminal, false);
      assert.equal(made.terminating, false);
      const found = await backend.find(spec.name, call);
      assert.equal(found?.uid, made.uid);
      assert.deepEqual(found?.metadata, spec.metadata);
      assert.deepEqual((await backend.list(call)).map(({ uid }) => uid), [made.uid]);
    },
  );

  test("create() gives the program its launch environment exactly", async (world, backend) => {
    const spec = specOf("1", kind);
    await backend.create(spec, call);
    const environment = await world.environmentOf(spec.name);
    for (const [key, value] of Object.entries(spec.environment)) {
      assert.equal(environment[key], value, key);
    }
  });

  test(
    "create() is a conflict when the name is taken, and leaves the first one alone",
    async (_, backend) => {
      const spec = specOf("1", kind);
      const made = await backend.create(spec, call);
      await rejectsWith("conflict", backend.create(spec, call));
      assert.deepEqual((await backend.list(call)).map(({ uid }) => uid), [made.uid]);
    },
  );

  test("create() makes one executor when it is called many times at once", async (_, backend) => {
    const spec = specOf("1", kind);
    const results = await Promise.allSettled(
      Array.from({ length: 8 }, () => backend.create(spec, call)),
    );
    const made = results.flatMap((result) => result.status === "fulfilled" ? [result.value] : []);
    assert.equal(made.length, 1);
    for (const result of results) {
      if (result.status === "rejected") assert.equal(codeOf(result.reason), "conflict");
    }
    assert.deepEqual((await backend.list(call)).map(({ uid }) => uid), [made[0]?.uid]);
  });

  test(
    "create() whose answer is lost has made an executor that can be found",
    async (world, backend) => {
      const spec = specOf("1", kind);
      assert.ok(world.loseNextAnswer !== undefined);
      world.loseNextAnswer();
      await rejectsWith("unknown_outcome", backend.create(spec, call));
      const found = await backend.find(spec.name, call);
      assert.deepEqual(found?.metadata, spec.metadata);
      await rejectsWith("conflict", backend.create(spec, call));
    },
    "lost answers",
  );

  test(
    "every method rejects with the reason of an aborted signal and changes nothing",
    async (_, backend) => {
      const spec = specOf("1", kind);
      const made = await backend.create(spec, call);
      const reason = new Error("stopped by the test");
      const aborted = { signal: AbortSignal.abort(reason) };
      for (
        const attempt of [
          () => backend.find(spec.name, aborted),
          () => backend.create(specOf("2", kind), aborted),
          () => backend.bindIdentity(made, spec.assignment, aborted),
          () => backend.markTerminal(made, aborted),
          () => backend.list(aborted),
          () => backend.delete(made, aborted),
        ]
      ) {
        await assert.rejects(attempt, reason);
      }
      const [left, ...others] = await backend.list(call);
      assert.deepEqual(others, []);
      assert.equal(left?.uid, made.uid);
      assert.equal(left?.terminal, false);
      assert.equal(left?.terminating, false);
    },
  );

  test(
    "create() aborted while it runs leaves either nothing or a whole executor",
    async (_, backend) => {
      for (const turns of [0, 1, 3, 10, 30]) {
        const spec = specOf(String(turns + 1), kind);
        const controller = new AbortController();
        const making = backend.create(spec, { signal: controller.signal });
        const outcome = Promise.allSettled([making]);
        for (let turn = 0; turn < turns; turn++) {
          await new Promise((resolve) => setTimeout(resolve, 0));
        }
        controller.abort(new Error("stopped by the test"));
        await outcome;
        const found = await backend.find(spec.name, call);
        if (found === undefined) await backend.create(spec, call);
        else assert.deepEqual(found.metadata, spec.metadata);
      }
      assert.equal((await backend.list(call)).length, 5);
    },
  );

  test(
    "bindIdentity() gives the executor the assignment's SPIFFE ID, again and again",
    async (world, backend) => {
      const [one, two] = [specOf("1", kind), specOf("2", kind)];
      const made = await backend.create(one, call);
      await backend.create(two, call);
      const ready = await withTarget(backend, made);
      await backend.bindIdentity(ready, one.assignment, call);
      await backend.bindIdentity(ready, one.assignment, call);
      assert.equal(await world.boundTo(one.name), one.assignment.identity.spiffeId);
      assert.equal(await world.boundTo(two.name), null);
    },
  );

  test(
    "list() tells whether the identity is bound, and bindIdentity() binds again what was lost",
    async (world, backend) => {
      const spec = specOf("1", kind);
      const listed = async () => (await backend.list(call))[0]?.identityBound;
      const made = await withTarget(backend, await backend.create(spec, call));
      assert.equal(await listed(), false);
      await backend.bindIdentity(made, spec.assignment, call);
      assert.equal(await listed(), true);
      assert.ok(world.unbind !== undefined);
      await world.unbind(spec.name);
      assert.equal(await listed(), false);
      await backend.bindIdentity(made, spec.assignment, call);
      assert.equal(await listed(), true);
      assert.equal(await world.boundTo(spec.name), spec.assignment.identity.spiffeId);
    },
    "bindings that can be seen",
  );

  test("bindIdentity() refuses another assignment's SPIFFE ID", async (world, backend) => {
    const [one, two] = [specOf("1", kind), specOf("2", kind)];
    const made = await withTarget(backend, await backend.create(one, call));
    await rejectsWith("invalid", backend.bindIdentity(made, two.assignment, call));
    assert.equal(await world.boundTo(one.name), null);
  });

  test(
    "bindIdentity() refuses an executor that is gone, also when the name is taken again",
    async (world, backend) => {
      const spec = specOf("1", kind);
      const old = await withTarget(backend, await backend.create(spec, call));
      await backend.delete(old, call);
      await assert.rejects(backend.bindIdentity(old, spec.assignment, call), BackendError);
      await gone(backend, spec.name);
      const next = await backend.create(spec, call);
      assert.notEqual(next.uid, old.uid);
      await rejectsWith("conflict", backend.bindIdentity(old, spec.assignment, call));
      assert.equal(await world.boundTo(spec.name), null);
    },
  );

  test(
    "markTerminal() is durable, visible as a label, and may be repeated",
    async (world, backend) => {
      const spec = specOf("1", kind);
      const made = await backend.create(spec, call);
      await backend.markTerminal(made, call);
      await backend.markTerminal(made, call);
      const again = await (await world.reopen()).find(spec.name, call);
      assert.equal(again?.terminal, true);
      assert.equal(again?.metadata.labels[`${PREFIX}/terminal`], "true");
      assert.equal(again?.uid, made.uid);
    },
  );

  test(
    "markTerminal() does nothing when the executor is gone or is another one",
    async (_, backend) => {
      const spec = specOf("1", kind);
      await backend.markTerminal({ name: spec.name, uid: "other" }, call);
      await backend.create(spec, call);
      await backend.markTerminal({ name: spec.name, uid: "other" }, call);
      assert.equal((await backend.find(spec.name, call))?.terminal, false);
    },
  );

  test("an executor that ends by itself says how, with its last lines", async (world, backend) => {
    const spec = specOf("1", kind);
    await backend.create(spec, call);
    await world.end(spec.name, { code: 3, line: "it went wrong" });
    const ended = await eventually(
      async () => (await backend.find(spec.name, call))?.ended ?? undefined,
      {
        what: "the end of the executor",
      },
    );
    const { tellsEnd = "everything" } = world;
    assert.equal(ended.code, "executor_failed");
    assert.equal(ended.exitCode, tellsEnd === "failure" ? null : 3);
    assert.match(ended.detail, tellsEnd === "failure" ? /fail/i : /exit code 3/);
    if (tellsEnd === "everything") assert.ok(ended.lastLines.includes("it went wrong"));
    else assert.deepEqual(ended.lastLines, []);
    await rejectsWith("conflict", backend.create(spec, call));
  });

  test(
    "list() shows an object that cannot be read beside the others, and it can be deleted",
    async (world, backend) => {
      const [one, two] = [specOf("1", kind), specOf("2", kind)];
      await backend.create(one, call);
      await backend.create(two, call);
      await world.corrupt(one.name);
      const all = await backend.list(call);
      assert.deepEqual(all.map((executor) => executor.name).sort(), [one.name, two.name].sort());
      const damaged = all.find((executor) => executor.name === one.name);
      assert.ok(damaged !== undefined);
      assert.notDeepEqual(damaged.metadata, one.metadata);
      await backend.delete(damaged, call);
      await gone(backend, one.name);
      assert.deepEqual((await backend.list(call)).map((executor) => executor.name), [two.name]);
    },
  );

  test("delete() removes executor and identity, and frees the name", async (world, backend) => {
    const spec = specOf("1", kind);
    const made = await withTarget(backend, await backend.create(spec, call));
    await backend.bindIdentity(made, spec.assignment, call);
    await backend.delete(made, call);
    await gone(backend, spec.name);
    assert.equal(await world.boundTo(spec.name), null);
    await backend.delete(made, call);
    assert.notEqual((await backend.create(spec, call)).uid, made.uid);
  });

  test(
    "delete() leaves an executor of another uid alone, with its identity",
    async (world, backend) => {
      const spec = specOf("1", kind);
      const made = await withTarget(backend, await backend.create(spec, call));
      await backend.bindIdentity(made, spec.assignment, call);
      await backend.delete({ name: spec.name, uid: "other" }, call).catch((error) => {
        assert.equal(codeOf(error), "conflict");
      });
      assert.equal((await backend.find(spec.name, call))?.uid, made.uid);
      assert.equal(await world.boundTo(spec.name), spec.assignment.identity.spiffeId);
    },
  );

  test("delete() succeeds when there is nothing", async (_, backend) => {
    await backend.delete({ name: specOf("1", kind).name, uid: "any" }, call);
  });

  test("delete() may be called many times at once", async (_, backend) => {
    const made = await backend.create(specOf("1", kind), call);
    await Promise.all(Array.from({ length: 4 }, () => backend.delete(made, call)));
    await gone(backend, made.name);
    assert.deepEqual(await backend.list(call), []);
  });

  test(
    "watch() reports creation, end and deletion, and ends when aborted",
    async (world, backend) => {
      const controller = new AbortController();
      const seen: ExecutorChange[] = [];
      const watching = (async () => {
        for await (const change of backend.watch({ signal: controller.signal })) seen.push(change);
      })();
      const spec = specOf("1", kind);
      const of = (test: (change: ExecutorChange) => boolean, what: string) =>
        eventually(() => seen.some((change) => change.name === spec.name && test(change)), {
          what,
        });
      const made = await backend.create(spec, call);
      await of(({ executor }) => executor?.uid === made.uid, "the creation");
      await world.end(spec.name, { code: world.tellsEnd === "failure" ? 1 : 0, line: "done" });
      await of(({ executor }) => executor !== null && executor.ended !== null, "the end");
      await backend.delete(made, call);
      await of(({ executor }) => executor === null, "the deletion");
      controller.abort();
      await watching;
    },
  );

  test(
    "executors outlive the backend object: another one knows them all and can end them",
    async (world, backend) => {
      const specs = ["1", "2", "3"].map((task) => specOf(task, kind));
      const made = await Promise.all(specs.map((spec) => backend.create(spec, call)));
      const [first] = specs;
      assert.ok(first !== undefined);
      await world.end(first.name, { code: 7, line: "ended meanwhile" });
      const next = await world.reopen();
      const ended = await eventually(
        async () => (await next.find(first.name, call))?.ended ?? undefined,
        {
          what: "the end of the first",
        },
      );
      assert.equal(ended.exitCode, world.tellsEnd === "failure" ? null : 7);
      const all = await next.list(call);
      assert.deepEqual(
        all.map(({ name, uid }) => [name, uid]).sort(),
        made.map(({ name, uid }) => [name, uid]).sort(),
      );
      assert.deepEqual(
        all.map(({ metadata }) => metadata.labels[`${PREFIX}/task-id`]).sort(),
        ["1", "2", "3"],
      );
      await rejectsWith("conflict", next.create(first, call));
      for (const executor of all) await next.delete(executor, call);
      for (const spec of specs) await gone(backend, spec.name);
    },
  );

  test(
    "100 creates and deletes in a row, 10 at a time, leave nothing behind",
    async (_, backend) => {
      for (let round = 0; round < 10; round++) {
        await Promise.all(Array.from({ length: 10 }, async (_, index) => {
          const spec = specOf(String(round * 10 + index + 1), kind);
          await backend.delete(await backend.create(spec, call), call);
          await gone(backend, spec.name);
        }));
      }
      assert.deepEqual(await backend.list(call), []);
    },
  );

  /** Waits until the backend knows what an identity is bound to. */
  async function withTarget(backend: Backend, executor: Executor): Promise<Executor> {
    return await eventually(async () => {
      const found = await backend.find(executor.name, call);
      return found?.identityTarget == null ? undefined : found;
    }, { what: "the identity target" });
  }

  async function gone(backend: Backend, executor: ExecutorName): Promise<void> {
    await eventually(async () => await backend.find(executor, call) === undefined, {
      what: "the executor to be gone",
    });
  }
}

/** The code of a {@link BackendError}; undefined for anything else. */
function codeOf(error: unknown): string | undefined {
  return error instanceof BackendError ? error.code : undefined;
}
