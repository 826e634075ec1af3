import assert from "node:assert/strict";
import { SandboxError } from "../../backends/vm/sandboxes.ts";
import { startFakeOpenSandbox } from "../../tests/fakes/opensandbox.ts";
import { call } from "../../tests/support/calls.ts";
import { answer, NEW_SANDBOX, openLifecycle, pageOf } from "../../tests/support/lifecycle_setup.ts";
import { rejection } from "../../tests/support/rejections.ts";

interface Answered {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly times?: number;
}

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

Deno.test("a create has a connection of its own, everything else shares them", async () => {
  const ports = new Map<string, number[]>();
  const { promise, resolve } = Promise.withResolvers<void>();
  await using listener = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => resolve() },
    async (request, { remoteAddr }) => {
      await request.text();
      const seen = ports.get(request.method) ?? [];
      ports.set(request.method, [...seen, remoteAddr.port]);
      if (request.method === "GET") return Response.json(pageOf([], 0, false));
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
