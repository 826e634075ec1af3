import assert from "node:assert/strict";
import { SandboxError } from "../../backends/vm/sandboxes.ts";
import { Secret } from "../../lib/secret.ts";
import {
  FAKE_KEY,
  type FakeOpenSandbox,
  type Fault,
  startFakeOpenSandbox,
} from "../../tests/fakes/opensandbox.ts";
import { call } from "../../tests/support/calls.ts";
import { NEW_SANDBOX, openLifecycle } from "../../tests/support/lifecycle_setup.ts";
import { rejection } from "../../tests/support/rejections.ts";

interface Answered {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly times?: number;
}

function answer(
  server: FakeOpenSandbox,
  [method, body]: readonly [method: string, body: unknown],
  { status = 200, headers = {}, times = 1 }: Answered = {},
): void {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const fault: Fault = {
    method,
    when: "before",
    times,
    answer: { kind: "status", status, body: text, headers },
  };
  server.faults.push(fault);
}

const page = (items: readonly unknown[], total: number, hasNextPage: boolean) => ({
  items,
  pagination: { page: 1, pageSize: 100, totalItems: total, totalPages: 1, hasNextPage },
});

const gets = (server: FakeOpenSandbox) => server.requests.length;

Deno.test("list() tells only what has the metadata, also when the filter was lost on the way", async () => {
  await using server = startFakeOpenSandbox();
  using api = openLifecycle(server);
  const ours = server.plant({ metadata: { a: "1", b: "2" } });
  server.plant({ metadata: { a: "1", b: "3" } });
  server.plant({ metadata: {} });
  const items = [...server.sandboxes.values()];
  answer(server, ["GET", page(items, 3, false)]);
  assert.deepEqual((await api.list({ a: "1", b: "2" }, call)).map(({ id }) => id), [ours.id]);
});

Deno.test("list() rejects, and does not say none, when pages hold fewer than the server counts", async () => {
  await using server = startFakeOpenSandbox();
  using api = openLifecycle(server);
  answer(server, ["GET", page([], 1, false)], { times: 100 });
  const error = await rejection(SandboxError, api.list({ a: "1" }, call));
  assert.equal(error.code, "unknown_outcome");
  assert.match(error.message, /0 sandboxes on its pages, 1 by its own count/);
  assert.equal(gets(server), 4);
  assert.equal(api.status().lastError, error.message);
  assert.notEqual(api.status().state, "up");
});

Deno.test("list() takes what is there when the count is too low", async () => {
  await using server = startFakeOpenSandbox();
  using api = openLifecycle(server);
  const one = server.plant({ metadata: { a: "1" } });
  answer(server, ["GET", page([one], 0, false)], { times: 100 });
  assert.deepEqual((await api.list({ a: "1" }, call)).map(({ id }) => id), [one.id]);
});

Deno.test("list() ends when there is always another page, empty or the same again", async () => {
  for (const full of [false, true]) {
    await using server = startFakeOpenSandbox();
    using api = openLifecycle(server);
    const one = server.plant({ metadata: { a: "1" } });
    answer(server, ["GET", page(full ? [one] : [], 1, true)], { times: 1_000 });
    assert.equal(
      (await rejection(SandboxError, api.list({ a: "1" }, call))).code,
      "unknown_outcome",
    );
    assert.ok(gets(server) <= 8, `${gets(server)} requests`);
  }
});

Deno.test("list() has one time limit for all its pages, and tells of it", async () => {
  await using server = startFakeOpenSandbox();
  using api = openLifecycle(server, { listTimeoutMs: 60 });
  server.faults.push({ method: "GET", when: "before", answer: { kind: "hang" } });
  const error = await rejection(SandboxError, api.list({}, call));
  assert.equal(error.message, "no whole list within 0.06 s");
  assert.notEqual(api.status().state, "up");
});

Deno.test("create() does not take another sandbox for the one that it asked for", async () => {
  await using server = startFakeOpenSandbox();
  using api = openLifecycle(server);
  const other = server.plant({ metadata: { "ci.example.org/task-id": "8" } });
  answer(server, ["POST", other], { status: 202 });
  const error = await rejection(SandboxError, api.create(NEW_SANDBOX, call));
  assert.equal(error.code, "unknown_outcome");
  assert.match(error.message, /not asked for/);
});

for (
  const [what, body, status] of [
    ["a page of a proxy's", "<html>Welcome</html>", 200],
    ["another service", { detail: "Not Found" }, 404],
    ["a firewall", "<html>Forbidden</html>", 403],
    ["cut JSON", '{"items":[{"id":"x"', 200],
    ["a list of something else", { items: [{ name: "x" }], pagination: {} }, 200],
    ["a limit on the way", "", 429],
  ] as const
) {
  Deno.test(`status() is not up while lists are answered by ${what}`, async () => {
    await using server = startFakeOpenSandbox();
    using api = openLifecycle(server);
    answer(server, ["GET", body], { status });
    const { message } = await rejection(SandboxError, api.list({}, call));
    assert.notEqual(api.status().state, "up");
    assert.equal(api.status().lastError, message);
    await api.list({}, call);
    assert.equal(api.status().state, "up");
  });
}

Deno.test("a key that no header can carry is refused at once, and not shown", async () => {
  await using server = startFakeOpenSandbox();
  for (const key of ["planted\nkey", "planted\r\nx: y", "geplänt", "plan\u0000ted"]) {
    assert.throws(() => openLifecycle(server, { apiKey: new Secret(key) }), (error) => {
      assert.ok(error instanceof TypeError);
      assert.match(error.message, /OPENSANDBOX_API_KEY/);
      assert.ok(!Deno.inspect(error).includes(key));
      return true;
    });
  }
});

Deno.test("the capability is taken out of what an answer quotes of a create", async () => {
  await using server = startFakeOpenSandbox();
  using api = openLifecycle(server);
  const capability = "planted-capability-0123456789";
  const environment = { CI_RUNNER_CAPABILITY: capability, SHORT: "x" };
  for (const body of [`<html>${capability}</html>`, { code: "X", message: `no ${capability}` }]) {
    answer(server, ["POST", body], { status: 400 });
    const error = await rejection(SandboxError, api.create({ ...NEW_SANDBOX, environment }, call));
    assert.match(error.message, /\[secret\]/);
    assert.ok(!Deno.inspect(error).includes(capability));
  }
});

Deno.test("a create has a connection of its own, everything else shares them", async () => {
  const ports = new Map<string, number[]>();
  const { promise, resolve } = Promise.withResolvers<void>();
  await using listener = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => resolve() },
    async (request, { remoteAddr }) => {
      await request.text();
      const seen = ports.get(request.method) ?? [];
      ports.set(request.method, [...seen, remoteAddr.port]);
      if (request.method === "GET") return Response.json(page([], 0, false));
      return Response.json({ id: "a", metadata: NEW_SANDBOX.metadata }, { status: 202 });
    },
  );
  await promise;
  using api = openLifecycle({ url: `http://127.0.0.1:${listener.addr.port}` });
  for (let round = 0; round < 3; round++) {
    await api.list({}, call);
    await api.create(NEW_SANDBOX, call);
  }
  const of = (method: string) => new Set(ports.get(method));
  assert.deepEqual([of("GET").size, of("POST").size], [1, 3]);
  assert.equal(of("GET").union(of("POST")).size, 4);
});

Deno.test("what never left is said to be so: TLS where there is none, and a peer that hangs up on it", async () => {
  await using server = startFakeOpenSandbox();
  using plain = openLifecycle(server, { url: server.url.replace("http:", "https:") });
  const error = await rejection(SandboxError, plain.create(NEW_SANDBOX, call));
  assert.equal(error.code, "unreachable");
  assert.match(error.message, /does not speak TLS: does OPENSANDBOX_API begin with http:/);
  assert.deepEqual(server.requests, []);
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const serving = (async () => {
    for await (const connection of listener) connection.close();
  })();
  using api = openLifecycle(server, { url: `https://127.0.0.1:${listener.addr.port}` });
  assert.equal((await rejection(SandboxError, api.create(NEW_SANDBOX, call))).code, "unreachable");
  using http = openLifecycle(server, { url: `http://127.0.0.1:${listener.addr.port}` });
  assert.equal(
    (await rejection(SandboxError, http.create(NEW_SANDBOX, call))).code,
    "unknown_outcome",
  );
  listener.close();
  await serving;
});

Deno.test("an answer without an end is given up", async () => {
  await using server = startFakeOpenSandbox();
  using api = openLifecycle(server);
  answer(server, ["GET", " ".repeat(17 * 2 ** 20)]);
  assert.match((await rejection(SandboxError, api.list({}, call))).message, /longer than 16 MiB/);
});

Deno.test("a key that was replaced in its file is read again when the old one is refused", async () => {
  await using server = startFakeOpenSandbox();
  const old = new Secret("old-planted-key");
  let inFile = "old-planted-key";
  let reads = 0;
  const options = {
    apiKey: old,
    readKey() {
      reads++;
      return Promise.resolve(new Secret(inFile));
    },
  };
  using api = openLifecycle(server, options);
  assert.equal((await rejection(SandboxError, api.list({}, call))).code, "unauthorized");
  assert.deepEqual([reads, server.requests.length], [1, 1]);
  inFile = "broken\nkey";
  assert.equal((await rejection(SandboxError, api.list({}, call))).code, "unauthorized");
  inFile = FAKE_KEY;
  const made = await api.create(NEW_SANDBOX, call);
  assert.equal(server.created.length, 1);
  assert.deepEqual(server.requests.slice(-2).map(({ key }) => key), ["old-planted-key", FAKE_KEY]);
  await api.get(made.id, call);
  assert.equal(reads, 3, "not while it is accepted");
  const body = { code: "X", message: `not old-planted-key but ${FAKE_KEY}` };
  answer(server, ["GET", body], { status: 400 });
  assert.match(
    (await rejection(SandboxError, api.list({}, call))).message,
    /not \[secret\] but \[secret\]/,
  );
});

Deno.test("a request is not repeated with another key by a process that may not act any more", async () => {
  await using server = startFakeOpenSandbox();
  let asked = 0;
  using api = openLifecycle(server, {
    apiKey: new Secret("old"),
    readKey: () => Promise.resolve(new Secret(FAKE_KEY)),
    before() {
      if (asked++ > 0) throw new Error("does not lead");
    },
  });
  await assert.rejects(api.create(NEW_SANDBOX, call), /does not lead/);
  assert.deepEqual(server.created, []);
});

Deno.test("a key that is a word of the answers takes nothing out of them", async () => {
  await using server = startFakeOpenSandbox();
  using api = openLifecycle(server, { apiKey: new Secret("vm") });
  const metadata = { "ci.example.org/backend": "vm" };
  const one = { ...server.plant({ metadata }), status: { state: "Running", reason: "vm" } };
  answer(server, ["GET", page([one], 1, false)]);
  const [found] = await api.list(metadata, call);
  assert.deepEqual(found?.metadata, metadata);
  assert.equal(found?.reason, "vm");
});

Deno.test("a key is taken out of words in JSON also where it is escaped there", async () => {
  await using server = startFakeOpenSandbox();
  const key = 'pl"an\\ted';
  using api = openLifecycle(server, { apiKey: new Secret(key) });
  answer(server, ["GET", { detail: `you sent ${key}` }], { status: 400 });
  const quoted = await rejection(SandboxError, api.list({}, call));
  assert.match(quoted.message, /you sent \[secret\]/);
  assert.ok(!quoted.message.includes("an\\ted"));
});

Deno.test("Retry-After may be seconds or a date of the server's clock, and is bounded", async () => {
  const date = "Wed, 21 Oct 2026 07:28:00 GMT";
  for (
    const [header, expected] of [
      ["0", 0],
      ["7", 7_000],
      ["999999999", 300_000],
      ["99999999999", null],
      ["-5", null],
      ["1.5", null],
      ["soon", null],
      ["Wed, 21 Oct 2026 07:28:42 GMT", 42_000],
      ["Wed, 21 Oct 2026 07:00:00 GMT", 0],
      ["Wed, 21 Oct 2099 07:28:00 GMT", 300_000],
    ] as const
  ) {
    await using server = startFakeOpenSandbox();
    using api = openLifecycle(server);
    const headers = { "retry-after": header, date };
    answer(server, ["POST", { code: "KUBERNETES::POOL_CAPACITY_EXHAUSTED", message: "full" }], {
      status: 429,
      headers,
    });
    assert.equal(
      (await rejection(SandboxError, api.create(NEW_SANDBOX, call))).retryAfterMs,
      expected,
      header,
    );
  }
});

Deno.test("expiresAt is told by our clock, however far the server's is off", async () => {
  await using server = startFakeOpenSandbox();
  using api = openLifecycle(server);
  const serverNow = Date.now() - 5 * 3_600_000;
  const one = server.plant({
    metadata: { a: "1" },
    expiresAt: new Date(serverNow + 60_000).toISOString(),
  });
  answer(server, ["GET", one], { headers: { date: new Date(serverNow).toUTCString() } });
  const found = await api.get(one.id, call);
  const left = (found?.expiresAt ?? 0) - Date.now();
  assert.ok(Math.abs(left - 60_000) < 3_000, `${left} ms`);
});

Deno.test("metadata that are odd are read without harm", async () => {
  await using server = startFakeOpenSandbox();
  using api = openLifecycle(server);
  const odd = `{"id":"x","status":null,"createdAt":"never","expiresAt":7,"metadata":` +
    `{"__proto__":"p","constructor":"c","n":1,"o":{},"a":"1"}}`;
  const body = `{"items":[${odd},{"id":"y"}],"pagination":{"totalItems":2,"hasNextPage":false}}`;
  answer(server, ["GET", body]);
  const all = await api.list({}, call);
  assert.deepEqual(
    all.map(({ id, state, createdAt, expiresAt }) => [id, state, createdAt, expiresAt]),
    [
      ["x", "", 0, null],
      ["y", "", 0, null],
    ],
  );
  assert.deepEqual(Object.keys(all[0]?.metadata ?? {}).sort(), ["__proto__", "a", "constructor"]);
});
