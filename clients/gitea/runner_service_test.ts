import assert from "node:assert/strict";
import { GiteaError, type GiteaErrorCode } from "../../controller/gitea.ts";
import { untilAborted } from "../../lib/abortable.ts";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { Secret } from "../../lib/secret.ts";
import { LogRowSchema, Result, TaskStateSchema } from "../../proto/gen/runner/v1/messages_pb.ts";
import { create } from "../../proto/runtime.ts";
import { createFakeForge } from "../../tests/fakes/forge/fake_forge.ts";
import { endless } from "../../tests/support/endless.ts";
import { createGitea } from "./runner_service.ts";

const url = "http://forge.example";
const registration = { url, uuid: "u", token: new Secret("planted-token") };
const call = { signal: new AbortController().signal };

interface Row {
  readonly answer: string;
  readonly fetch: () => Promise<Response>;
  readonly code: GiteaErrorCode;
  readonly says: RegExp;
}

const answers = (status: number, body: string, type?: string) => () =>
  Promise.resolve(
    new Response(body, {
      status,
      ...(type === undefined ? {} : { headers: { "content-type": type } }),
    }),
  );
const gitea = (text: string) =>
  answers(500, JSON.stringify({ code: "unknown", message: text }), "application/json");
const transport = (message: string) => () => Promise.reject(new TypeError(message));

const rows: readonly Row[] = [
  {
    answer: "a text of Unauthenticated",
    fetch: gitea("rpc error: code = Unauthenticated desc = unregistered runner"),
    code: "unauthenticated",
    says:
      /unregistered runner: GITEA_RUNNER_UUID or GITEA_RUNNER_TOKEN is wrong.*deno task register/,
  },
  {
    answer: "a task of another runner",
    fetch: gitea("rpc error: code = Internal desc = update task: invalid runner for task"),
    code: "foreign_task",
    says: /invalid runner for task/,
  },
  {
    answer: "an unknown task",
    fetch: gitea("rpc error: code = Internal desc = get task: resource does not exist"),
    code: "not_found",
    says: /resource does not exist$/,
  },
  {
    answer: "a sealed log",
    fetch: gitea("rpc error: code = AlreadyExists desc = log file has been archived"),
    code: "log_sealed",
    says: /archived/,
  },
  {
    answer: "any other text",
    fetch: gitea("rpc error: code = Internal desc = pick task: database is locked"),
    code: "internal",
    says: /pick task: database is locked: see Gitea's log/,
  },
  {
    answer: "a web page",
    fetch: answers(200, "<html>", "text/html; charset=utf-8"),
    code: "not_gitea",
    says: /answered 200 with "text\/html": check that GITEA_URL/,
  },
  {
    answer: "a redirect",
    fetch: () =>
      Promise.resolve(
        new Response(null, { status: 302, headers: { location: "https://forge.example/login" } }),
      ),
    code: "not_gitea",
    says: /redirect to "https:\/\/forge\.example\/login"/,
  },
  { answer: "404", fetch: answers(404, "no\n", "text/plain"), code: "not_gitea", says: /404/ },
  {
    answer: "404 as JSON",
    fetch: answers(404, '{"message":"no"}', "application/json"),
    code: "not_gitea",
    says: /404/,
  },
  { answer: "415", fetch: answers(415, ""), code: "not_gitea", says: /415/ },
  {
    answer: "a proxy's 413",
    fetch: answers(413, "<html>", "text/html"),
    code: "too_large",
    says: /413.*raise the limit/,
  },
  {
    answer: "a proxy's 502",
    fetch: answers(502, "<html>", "text/html"),
    code: "unavailable",
    says: /answered 502/,
  },
  {
    answer: "without end",
    fetch: () =>
      Promise.resolve(
        new Response(endless(), { headers: { "content-type": "application/proto" } }),
      ),
    code: "not_gitea",
    says: /answered with more than 64 MiB: check that GITEA_URL/,
  },
  {
    answer: "a refused connection",
    fetch: transport("error sending request: tcp connect error: Connection refused (os error 111)"),
    code: "unavailable",
    says: /"http:\/\/forge\.example": connection refused: check GITEA_URL/,
  },
  {
    answer: "a reset connection",
    fetch: transport("error sending request: connection reset by peer"),
    code: "unavailable",
    says: /connection lost/,
  },
  {
    answer: "an unknown host",
    fetch: transport("error sending request: dns error: failed to lookup address information"),
    code: "unavailable",
    says: /host name does not resolve/,
  },
  {
    answer: "a certificate that is not trusted",
    fetch: transport("error sending request: invalid peer certificate: UnknownIssuer"),
    code: "unavailable",
    says: /TLS failed.*UnknownIssuer/,
  },
];

for (const row of rows) {
  Deno.test(`fetchTask() rejects with ${row.code} when the answer is ${row.answer}`, async () => {
    await using client = createGitea({ ...registration, fetch: row.fetch });
    await assert.rejects(client.fetchTask(0n, call), (error) => {
      assert(error instanceof GiteaError);
      assert.equal(error.code, row.code, error.message);
      assert.match(error.message, /^Cannot fetch a task from Gitea "http:\/\/forge\.example": /);
      assert.match(error.message, row.says);
      assert.doesNotMatch(Deno.inspect(error), /planted-token/);
      return true;
    });
  });
}

/** Answers nothing, until its caller gives up. */
const hangs = (init: RequestInit | undefined) =>
  untilAborted(init?.signal ?? AbortSignal.abort(new Error("a call without a signal")));

Deno.test("fetchTask() has Gitea give up first and rejects with unavailable after ten seconds", async () => {
  const clock = createFakeClock();
  let sent: Headers | undefined;
  await using client = createGitea({
    ...registration,
    clock,
    fetch: (_, init) => {
      sent = new Headers(init?.headers);
      return hangs(init);
    },
  });
  const outcomes: unknown[] = [];
  const fetching = client.fetchTask(0n, call).catch((error) => void outcomes.push(error));
  await clock.advance(9_900);
  assert.equal(outcomes.length, 0);
  await clock.advance(200);
  await fetching;
  const [outcome] = outcomes;
  assert(outcome instanceof GiteaError && outcome.code === "unavailable");
  assert.match(outcome.message, /no answer within 10 s/);
  assert.equal(sent?.get("connect-timeout-ms"), "8000");
  assert.equal(sent?.get("x-runner-token"), "planted-token");
  assert.equal(clock.pending, 0);
});

Deno.test("updateTask() has the check of the registration end within eight seconds", async () => {
  const clock = createFakeClock();
  await using client = createGitea({
    ...registration,
    clock,
    fetch: (_, init) => hangs(init),
  });
  const checking = client.updateTask({ state: create(TaskStateSchema, { id: 0n }) }, call);
  const refused = assert.rejects(checking, /no answer within 8 s: check GITEA_URL/);
  await clock.advance(8_000);
  await refused;
});

Deno.test("fetchTask() leaves a task claimed once when Gitea hands it out and never answers", async () => {
  const clock = createFakeClock();
  const fake = createFakeForge({ clock });
  await using client = createGitea({
    url: fake.url,
    ...fake.addRunner(),
    fetch: fake.fetch,
    clock,
  });
  fake.queue(2);
  fake.faults.handOutAndHang = 1;
  const lost = assert.rejects(client.fetchTask(0n, call), { code: "unavailable" });
  await clock.advance(11_000);
  await lost;
  assert.equal((await client.fetchTask(0n, call)).task?.id, 2n);
  assert.equal((await client.fetchTask(0n, call)).task, undefined);
});

Deno.test("updateTask() may be repeated when the answer to the final state was lost", async () => {
  const fake = createFakeForge();
  await using client = createGitea({ url: fake.url, ...fake.addRunner(), fetch: fake.fetch });
  fake.queue(1);
  const { task } = await client.fetchTask(0n, call);
  const state = create(TaskStateSchema, { id: task?.id ?? 0n, result: Result.SUCCESS });
  fake.faults.loseFinalAnswer = 1;
  await assert.rejects(client.updateTask({ state }, call), { code: "unavailable" });
  assert.equal((await client.updateTask({ state }, call)).state?.result, Result.SUCCESS);
});

Deno.test("updateLog() rejects with too_large when a proxy limits bodies, and with internal when the last row fails", async () => {
  const fake = createFakeForge();
  await using client = createGitea({ url: fake.url, ...fake.addRunner(), fetch: fake.fetch });
  fake.queue(1);
  const { task } = await client.fetchTask(0n, call);
  const send = (content: string, noMore: boolean) =>
    client.updateLog({
      taskId: task?.id ?? 0n,
      index: 0n,
      rows: [create(LogRowSchema, { content })],
      noMore,
    }, call);
  fake.faults.bodyLimit = 500;
  await assert.rejects(send("x".repeat(600), false), { code: "too_large", retryable: false });
  fake.faults.failLastRow = 2;
  await assert.rejects(send("end", true), { code: "internal", retryable: true });
  assert.equal((await send("end", true)).ackIndex, 1n);
});

Deno.test("createGitea() ends its calls in flight and closes its connections when disposed", async () => {
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    () => new Promise<Response>(() => {}),
  );
  const client = createGitea({ ...registration, url: `http://127.0.0.1:${server.addr.port}` });
  const fetching = assert.rejects(client.fetchTask(0n, call), { name: "AbortError" });
  await client[Symbol.asyncDispose]();
  await fetching;
  await server.shutdown();
});
