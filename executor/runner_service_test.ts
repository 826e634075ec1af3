import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { createFakeClock } from "../lib/fake_clock.ts";
import { silentLogger } from "../lib/logger.ts";
import {
  FetchTaskResponseSchema,
  UpdateLogRequestSchema,
  UpdateLogResponseSchema,
  UpdateTaskRequestSchema,
  UpdateTaskResponseSchema,
} from "../proto/gen/runner/v1/messages_pb.ts";
import { create, fromBinary, toBinary } from "../proto/runtime.ts";
import type { RpcAnswer } from "./facade_api.ts";
import { createRunnerService } from "./runner_service.ts";

const SERVICE = "/runner.v1.RunnerService";
const accepted = (body: Uint8Array, headers = {}): RpcAnswer => ({
  kind: "accepted",
  value: { body, headers },
});
const taskAnswer = (id: bigint) =>
  toBinary(FetchTaskResponseSchema, create(FetchTaskResponseSchema, { task: { id } }));

function setup() {
  const clock = createFakeClock();
  const asked: { method: string; timeoutMs: number | undefined }[] = [];
  const tasks: unknown[] = [];
  let facade: RpcAnswer | "silent" = accepted(new Uint8Array());
  let started = false;
  const signal = new AbortController().signal;
  const later: RpcAnswer = { kind: "later", why: "away" };
  const unused = () => Promise.reject(new Error("not used"));
  const service = createRunnerService({
    clock,
    logger: silentLogger,
    random: () => 0.5,
    uuid: "gitea-task-7",
    nonce: "the-nonce",
    taskId: 7n,
    onDeclare: () => {},
    onTask: (task) => tasks.push(task),
    facade: {
      async rpc(method, _body, { timeoutMs }) {
        asked.push({ method, timeoutMs });
        if (facade !== "silent") return facade;
        await clock.sleep(timeoutMs ?? 30_000);
        return later;
      },
      heartbeat: unused,
      terminating: unused,
      exit: unused,
      updateLog: unused,
      updateTask: unused,
    },
    outbox: {
      get started() {
        return started;
      },
      finalStored: false,
      cancelled: false,
      waiting: { rows: 0, states: 0 },
      log: (request) =>
        request.rows.length > 2
          ? undefined
          : create(UpdateLogResponseSchema, { ackIndex: BigInt(request.rows.length) }),
      state: () => create(UpdateTaskResponseSchema, {}),
      terminating: () => {},
      close: () => {},
      run: unused,
    },
  });
  return {
    clock,
    asked,
    tasks,
    set facade(answer: RpcAnswer | "silent") {
      facade = answer;
    },
    later,
    reportStarted: () => started = true,
    call(
      method: string,
      body: Uint8Array = new Uint8Array(),
      headers: Record<string, string> = {},
    ) {
      const all: Record<string, string> = {
        "x-runner-uuid": "gitea-task-7",
        "x-runner-token": "the-nonce",
        "content-type": "application/proto",
        ...headers,
      };
      return service.answer({ method, body, header: (name) => all[name] }, signal);
    },
  };
}

Deno.test("answer() refuses who cannot show the nonce, and never asks the facade for them", async () => {
  const it = setup();
  for (const token of ["", "wrong-one", "the-noncE", "the-nonce-and-more"]) {
    for (const method of ["FetchTask", "UpdateTask", "UpdateLog", "Declare"]) {
      const answer = await it.call(`${SERVICE}/${method}`, undefined, { "x-runner-token": token });
      assert.equal(answer.status, 403);
    }
  }
  const other = await it.call(`${SERVICE}/FetchTask`, undefined, { "x-runner-uuid": "other" });
  assert.equal(other.status, 403);
  assert.deepEqual(it.asked, []);
});

Deno.test("answer() refuses Register, unknown methods and other content types", async () => {
  const it = setup();
  assert.equal((await it.call(`${SERVICE}/Register`)).status, 403);
  assert.equal((await it.call(`${SERVICE}/Unknown`)).status, 404);
  const json = { "content-type": "application/json" };
  assert.equal((await it.call(`${SERVICE}/FetchTask`, undefined, json)).status, 415);
  assert.deepEqual(it.asked, []);
});

Deno.test("answer() takes reports of the executor's own task only", async () => {
  const it = setup();
  const log = (taskId: bigint) =>
    toBinary(UpdateLogRequestSchema, create(UpdateLogRequestSchema, { taskId }));
  const state = (id: bigint) =>
    toBinary(UpdateTaskRequestSchema, create(UpdateTaskRequestSchema, { state: { id } }));
  assert.equal((await it.call(`${SERVICE}/UpdateLog`, log(7n))).status, 200);
  assert.equal((await it.call(`${SERVICE}/UpdateLog`, log(8n))).status, 403);
  assert.equal((await it.call(`${SERVICE}/UpdateTask`, state(7n))).status, 200);
  assert.equal((await it.call(`${SERVICE}/UpdateTask`, state(8n))).status, 403);
});

Deno.test("answer() unpacks gzip and says unavailable when the spool is full", async () => {
  const it = setup();
  const request = (rows: number) =>
    toBinary(
      UpdateLogRequestSchema,
      create(UpdateLogRequestSchema, { taskId: 7n, rows: Array(rows).fill({ content: "x" }) }),
    );
  const packed = { "content-encoding": "gzip" };
  const answer = await it.call(`${SERVICE}/UpdateLog`, gzipSync(request(2)), packed);
  assert.equal(fromBinary(UpdateLogResponseSchema, answer.body).ackIndex, 2n);
  assert.equal((await it.call(`${SERVICE}/UpdateLog`, request(3))).status, 503);
  assert.equal((await it.call(`${SERVICE}/UpdateLog`, new Uint8Array([255, 255]))).status, 400);
});

Deno.test("answer() holds FetchTask for 4 s at most while the facade is silent", async () => {
  const it = setup();
  it.facade = "silent";
  let answered = false;
  const answer = it.call(`${SERVICE}/FetchTask`).then((value) => {
    answered = true;
    return value;
  });
  await it.clock.advance(3900);
  assert.equal(answered, false);
  await it.clock.advance(100);
  assert.equal(fromBinary(FetchTaskResponseSchema, (await answer).body).task, undefined);
  assert.equal(it.asked[0]?.timeoutMs, 4000);
});

Deno.test("answer() repeats the task until the runner's first report, then never again", async () => {
  const it = setup();
  it.facade = accepted(taskAnswer(7n));
  const fetch = async () => {
    const { body } = await it.call(`${SERVICE}/FetchTask`);
    return fromBinary(FetchTaskResponseSchema, body).task?.id;
  };
  assert.equal(await fetch(), 7n);
  assert.equal(await fetch(), 7n);
  assert.equal(it.asked.length, 1);
  assert.deepEqual(it.tasks, [{ logOffset: undefined }]);
  it.reportStarted();
  assert.equal(await fetch(), undefined);
});

for (const [said, logOffset] of [["12", 12], ["0", 0], ["-1", undefined], ["1e3", undefined]]) {
  Deno.test(`answer() takes the log offset "${said}" of the facade, and tells the runner nothing of it`, async () => {
    const it = setup();
    it.facade = accepted(taskAnswer(7n), { "x-log-offset": said });
    const { headers } = await it.call(`${SERVICE}/FetchTask`);
    assert.deepEqual(it.tasks, [{ logOffset }]);
    assert.deepEqual(Object.keys(headers).filter((name) => name.startsWith("x-")), []);
  });
}

Deno.test("answer() gives no task of another assignment and says why", async () => {
  const it = setup();
  it.facade = accepted(taskAnswer(8n));
  const { body } = await it.call(`${SERVICE}/FetchTask`);
  assert.equal(fromBinary(FetchTaskResponseSchema, body).task, undefined);
  assert.deepEqual(it.tasks, [{ refused: "facade offered task 8, this executor is for 7" }]);
});

Deno.test("answer() holds Declare until the facade answers and passes its capabilities on", async () => {
  const it = setup();
  it.facade = it.later;
  const answer = it.call(`${SERVICE}/Declare`);
  await it.clock.advance(60_000);
  it.facade = accepted(new Uint8Array([1]), { "x-gitea-actions-capabilities": "job-summary" });
  await it.clock.advance(2000);
  const { status, headers } = await answer;
  assert.equal(status, 200);
  assert.equal(headers["x-gitea-actions-capabilities"], "job-summary");
});
