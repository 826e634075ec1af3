import assert from "node:assert/strict";
import { Result } from "../../proto/gen/runner/v1/messages_pb.ts";
import { createMasks } from "../../embedded/sample_runner/masks.ts";
import { readJob } from "../../embedded/sample_runner/job.ts";
import { createReporter } from "../../embedded/sample_runner/reporter.ts";
import { runJob } from "../../embedded/sample_runner/run_job.ts";
import { systemClock } from "../../lib/clock.ts";
import {
  TaskStateSchema,
  UpdateLogResponseSchema,
  UpdateTaskRequestSchema,
  UpdateTaskResponseSchema,
} from "../../proto/gen/runner/v1/messages_pb.ts";
import { create, type MessageInitShape } from "../../proto/runtime.ts";
import { stringifyYaml } from "../../controller/model/workflow.ts";
import { taskOf } from "./executor_harness.ts";

interface Options {
  readonly env?: Readonly<Record<string, string>>;
  readonly secrets?: Readonly<Record<string, string>>;
  readonly vars?: Readonly<Record<string, string>>;
  readonly outputs?: Readonly<Record<string, string>>;
  readonly timeoutMinutes?: number;
}

/** Runs steps as the sample runner does and gives what it reported. */
async function run(steps: readonly Readonly<Record<string, unknown>>[], options: Options = {}) {
  const workflow = stringifyYaml({
    name: "x",
    on: "push",
    jobs: {
      build: {
        "runs-on": "self-hosted",
        env: options.env ?? {},
        outputs: options.outputs ?? {},
        ...(options.timeoutMinutes === undefined
          ? {}
          : { "timeout-minutes": options.timeoutMinutes }),
        steps,
      },
    },
  });
  const task = taskOf(1n, workflow, { giteaUrl: "http://gitea.test", ...options });
  const rows: string[] = [];
  let last: MessageInitShape<typeof UpdateTaskRequestSchema> = {};
  const rpc = {
    updateLog(request: { rows?: readonly { content?: string }[] }) {
      rows.push(...(request.rows ?? []).map((row) => row.content ?? ""));
      const ackIndex = BigInt(rows.length);
      return Promise.resolve(create(UpdateLogResponseSchema, { ackIndex }));
    },
    updateTask(request: MessageInitShape<typeof UpdateTaskRequestSchema>) {
      last = request;
      return Promise.resolve(create(UpdateTaskResponseSchema, {}));
    },
    declare: () => Promise.resolve(),
    fetchTask: () => Promise.reject(new Error("not used")),
  };
  const masks = createMasks(Object.values(task.secrets));
  const job = readJob(task.workflowPayload ?? new Uint8Array(), "build");
  const parts = { rpc, masks, clock: systemClock, taskId: 1n, steps: job.steps.length };
  const reporter = createReporter(parts);
  const folder = await Deno.makeTempDir();
  const ended = new AbortController();
  const reporting = reporter.run(ended.signal);
  try {
    const result = await runJob({
      ...parts,
      task,
      job,
      reporter,
      folder,
      env: { PATH: Deno.env.get("PATH") ?? "", HOME: folder },
      overrides: { HTTP_PROXY: "" },
      address: "http://gitea.test",
      stop: new AbortController().signal,
    });
    ended.abort();
    await reporting;
    await reporter.close(result);
  } finally {
    ended.abort();
    await Deno.remove(folder, { recursive: true });
  }
  const state = create(TaskStateSchema, last.state ?? {});
  const of = (index: number) => {
    const step = state.steps[index];
    if (step === undefined) throw new Error(`no step ${index}`);
    return rows.slice(Number(step.logIndex), Number(step.logIndex + step.logLength));
  };
  return {
    rows,
    result: state.result,
    steps: state.steps.map((step) => step.result),
    outputs: last.outputs ?? {},
    of,
  };
}

Deno.test("runJob() runs steps in order, each with its own rows", async () => {
  const it = await run([{ run: "echo one; echo err >&2; echo two" }, { run: "echo three" }]);
  assert.equal(it.result, Result.SUCCESS);
  assert.deepEqual(it.of(0).slice(1), ["one", "err", "two"]);
  assert.deepEqual(it.of(1).slice(1), ["three"]);
  assert.equal(it.rows.at(-1), "Job succeeded");
});

Deno.test("runJob() skips after a failure but for always() and failure()", async () => {
  const it = await run([
    { run: "exit 3" },
    { run: "echo not me" },
    { run: "echo cleaning", if: "always()" },
    { run: "echo failed", if: "${{ failure() }}" },
  ]);
  const { FAILURE, SKIPPED, SUCCESS } = Result;
  assert.equal(it.result, FAILURE);
  assert.deepEqual(it.steps, [FAILURE, SKIPPED, SUCCESS, SUCCESS]);
  assert.equal(it.rows.includes("Error: the step ended with exit code 3"), true);
  assert.equal(it.rows.includes("not me"), false);
});

Deno.test("runJob() carries outputs, GITHUB_ENV and GITHUB_PATH from step to step", async () => {
  const it = await run([
    { id: "a", run: 'echo "v=1.2" >> "$GITHUB_OUTPUT"; echo "LATER=yes" >> "$GITHUB_ENV"' },
    {
      run:
        'mkdir -p bin; echo "echo mine" > bin/tool; chmod +x bin/tool; echo "$PWD/bin" >> "$GITHUB_PATH"',
    },
    { run: "echo ${{ steps.a.outputs.v }} $LATER; tool" },
  ], { outputs: { version: "${{ steps.a.outputs.v }}" } });
  assert.equal(it.result, Result.SUCCESS);
  assert.deepEqual(it.of(2).slice(1), ["1.2 yes", "mine"]);
  assert.deepEqual(it.outputs, { version: "1.2" });
});

Deno.test("runJob() masks secrets, also those a step adds", async () => {
  const it = await run([
    {
      run: 'echo "the $S"; echo "::add-mask::soon"; echo "soon ${{ vars.V }}"',
      env: { S: "${{ secrets.S }}" },
    },
  ], { secrets: { S: "very-secret" }, vars: { V: "plain" } });
  assert.deepEqual(it.of(0).slice(1), ["the ***", "*** plain"]);
  assert.equal(it.rows.some((row) => row.includes("very-secret")), false);
});

Deno.test("runJob() goes on after a failure that may happen", async () => {
  const it = await run([{ run: "false", "continue-on-error": true }, { run: "echo on" }]);
  assert.equal(it.result, Result.SUCCESS);
  assert.deepEqual(it.steps, [Result.FAILURE, Result.SUCCESS]);
});

Deno.test("runJob() ends a step that takes too long, with all that it started", async () => {
  const it = await run([{ run: "sleep 60 & sleep 60", "timeout-minutes": 0.005 }]);
  assert.equal(it.result, Result.FAILURE);
  assert.equal(it.rows.includes("Error: the time limit is over"), true);
});

Deno.test("runJob() fails a job at its own time limit", async () => {
  const it = await run([{ run: "sleep 60" }, { run: "echo no" }], { timeoutMinutes: 0.005 });
  assert.equal(it.result, Result.FAILURE);
  assert.deepEqual(it.steps, [Result.FAILURE, Result.SKIPPED]);
  assert.equal(it.rows.filter((row) => row === "Error: the time limit is over").length, 1);
});

Deno.test("runJob() keeps of a line that does not end what fits into memory, and reads on after it", async () => {
  const it = await run([{ run: "head -c 40000000 /dev/zero | tr '\\0' x; echo; echo next" }]);
  assert.equal(it.result, Result.SUCCESS);
  const [long, next] = it.of(0).slice(1);
  assert.ok(long !== undefined && long.length >= 1024 * 1024 && long.length < 2 * 1024 * 1024);
  assert.equal(next, "next");
});

Deno.test("runJob() says that actions need the official runner", async () => {
  const it = await run([{ uses: "actions/checkout@v4" }]);
  assert.equal(it.result, Result.FAILURE);
  assert.match(it.rows.join("\n"), /needs the official runner/);
});

Deno.test("runJob() brings 5,000 lines in order", async () => {
  const it = await run([{ run: "seq 1 5000" }]);
  assert.deepEqual(it.of(0).slice(1), Array.from({ length: 5000 }, (_, i) => String(i + 1)));
});
