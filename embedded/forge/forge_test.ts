import assert from "node:assert/strict";
import { createFakeClock } from "../../lib/fake_clock.ts";
import {
  DeclareRequestSchema,
  FetchTaskRequestSchema,
  LogRowSchema,
  RegisterRequestSchema,
  Result,
  TaskStateSchema,
  UpdateLogRequestSchema,
  UpdateTaskRequestSchema,
} from "../../proto/gen/runner/v1/messages_pb.ts";
import { create } from "../../proto/runtime.ts";
import { createForge, type Forge } from "./forge.ts";
import { parseJobFile } from "./job_file.ts";
import { forgeHandler } from "./server.ts";
import { createFileStore, type StoredRunner } from "./store.ts";

const EVIL = `<img src=x onerror="alert(1)">'`;
const runs = parseJobFile(`
- repository: a/b
  file: w.yaml
  workflow:
    on: push
    jobs:
      one: {runs-on: [self-hosted, pod], name: ${JSON.stringify(EVIL)}, steps: [{run: echo 1}]}
      two: {runs-on: [self-hosted, pod], steps: [{run: echo 2}]}
`);

async function setup() {
  const folder = await Deno.makeTempDir();
  const clock = createFakeClock();
  return {
    folder,
    clock,
    /** Another process on the same folder. */
    open: () =>
      createForge({ store: createFileStore(`${folder}/s`), clock, serverUrl: "http://f/" }),
    [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
  };
}

function runnerOf(forge: Forge, capabilities: string[] = []): StoredRunner {
  const { registrationToken: token } = forge;
  const runner = forge.register(create(RegisterRequestSchema, { name: "r", token }));
  const labels = ["self-hosted", "pod"];
  forge.declare(runner, create(DeclareRequestSchema, { labels, capabilities }));
  return runner;
}

const fetchFrom = (forge: Forge, runner: StoredRunner) =>
  forge.fetchTask(runner, create(FetchTaskRequestSchema, { tasksVersion: 0n })).task;

const log = (taskId: bigint, index: bigint, contents: readonly string[], noMore = false) =>
  create(UpdateLogRequestSchema, {
    taskId,
    index,
    noMore,
    rows: contents.map((content) => create(LogRowSchema, { content })),
  });

const update = (id: bigint, result: Result) =>
  create(UpdateTaskRequestSchema, {
    state: create(TaskStateSchema, { id, result }),
    outputs: { k: "v" },
  });

Deno.test("createForge() loses nothing that it has answered when it is opened anew", async () => {
  await using s = await setup();
  const before = s.open();
  const runner = runnerOf(before);
  before.dispatch(runs);
  const task = fetchFrom(before, runner);
  assert(task !== undefined);
  before.updateLog(runner, log(task.id, 0n, ["a", "b"]));
  before.updateTask(runner, update(task.id, Result.UNSPECIFIED));

  const after = s.open();
  const same = after.authenticate(runner.uuid, runner.token);
  assert.equal(after.registrationToken, before.registrationToken);
  assert.deepEqual(same.labels, ["self-hosted", "pod"]);
  assert.equal(after.updateLog(same, log(task.id, 0n, ["a", "b", "c"], true)).ackIndex, 3n);
  assert.deepEqual(after.updateTask(same, update(task.id, Result.SUCCESS)).sentOutputs, ["k"]);
  assert.equal(fetchFrom(after, same)?.id, task.id + 1n);
  assert.equal(fetchFrom(after, same), undefined);
  assert.deepEqual(s.open().jobs().map(({ result }) => result), ["success", null]);
});

Deno.test("createForge() drops a log row that a crash has cut short", async () => {
  await using s = await setup();
  const before = s.open();
  const runner = runnerOf(before);
  const [jobId] = before.dispatch(runs);
  const task = fetchFrom(before, runner);
  before.updateLog(runner, log(task?.id ?? 0n, 0n, ["whole"]));
  Deno.writeTextFileSync(`${s.folder}/s/job-${jobId}.log`, '{"time":1,"con', { append: true });
  const after = s.open();
  const same = after.authenticate(runner.uuid, runner.token);
  after.updateLog(same, log(task?.id ?? 0n, 1n, ["next"]));
  const rows = s.open().rows(jobId ?? 0).map(({ content }) => content);
  assert.deepEqual(rows, ["whole", "next"]);
});

Deno.test("cancel() waits for the runner when it can clean up and was heard of, and ends the job at once else", async () => {
  await using s = await setup();
  const forge = s.open();
  const runner = runnerOf(forge, ["cancelling"]);
  const [first, second] = forge.dispatch(runs);
  const task = fetchFrom(forge, runner);
  assert(task !== undefined && first !== undefined && second !== undefined);
  forge.cancel(first);
  forge.cancel(second);
  assert.deepEqual(forge.jobs().map(({ result }) => result), [null, "cancelled"]);
  const beat = forge.updateTask(runner, update(task.id, Result.UNSPECIFIED));
  assert.equal(beat.state?.result, Result.CANCELLED);
  forge.updateTask(runner, update(task.id, Result.SUCCESS));
  assert.equal(forge.jobs()[0]?.result, "cancelled");
});

Deno.test("fetchTask() fails a task that nobody has reported on for ten minutes", async () => {
  await using s = await setup();
  const forge = s.open();
  const runner = runnerOf(forge);
  forge.dispatch(runs);
  fetchFrom(forge, runner);
  await s.clock.advance(601_000);
  fetchFrom(forge, runner);
  assert.deepEqual(forge.jobs().map(({ result }) => result), ["failure", null]);
});

Deno.test("forgeHandler() shows a job at the address that its task names, with its text made harmless", async () => {
  await using s = await setup();
  const forge = s.open();
  const runner = runnerOf(forge);
  forge.dispatch(runs);
  const task = fetchFrom(forge, runner);
  forge.updateLog(runner, log(task?.id ?? 0n, 0n, [EVIL]));
  const context = task?.context ?? {};
  const claims: unknown = JSON.parse(atob(String(context.gitea_runtime_token).split(".")[1] ?? ""));
  assert(typeof claims === "object" && claims !== null && "JobID" in claims);
  const url =
    `${context.server_url}${context.repository}/actions/runs/${context.run_id}/jobs/${claims.JobID}`;
  const handle = forgeHandler(forge);
  const page = await handle(new Request(url));
  const html = await page.text();
  assert.equal(page.status, 200);
  assert(!html.includes("<img"), "markup of a job reached the page");
  assert.match(html, /&lt;img src=x onerror=&quot;alert\(1\)&quot;&gt;&#39;/);
  assert.match(page.headers.get("content-security-policy") ?? "", /default-src 'none'/);
  const json = await (await handle(new Request(`${url}?format=json`))).json();
  assert.deepEqual([json.state, json.log], ["running", [EVIL]]);
  const list = await (await handle(new Request("http://f/api/forge/tasks"))).json();
  assert.deepEqual(list.map(({ state }: { state: string }) => state), ["running", "waiting"]);
  assert.equal((await handle(new Request("http://f/nothing"))).status, 404);
  assert.equal((await handle(new Request(url, { method: "POST" }))).status, 405);
});

Deno.test("cancel() closes the steps of a job that it ends itself, as Gitea does", async () => {
  await using given = await setup();
  const forge = given.open();
  const runner = runnerOf(forge);
  const [job = 0] = forge.dispatch(runs);
  const id = fetchFrom(forge, runner)?.id ?? 0n;
  const steps = [{ id: 0n, result: Result.SUCCESS }, { id: 1n }];
  const state = create(TaskStateSchema, { id, steps });
  forge.updateTask(runner, create(UpdateTaskRequestSchema, { state }));
  forge.cancel(job);
  assert.deepEqual(forge.jobs()[0]?.steps.map(({ result }) => result), ["success", "cancelled"]);
});
