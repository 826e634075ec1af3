import assert from "node:assert/strict";
import { SandboxError } from "../../backends/vm/sandboxes.ts";
import { startFakeOpenSandbox } from "../../tests/fakes/opensandbox.ts";
import { call } from "../../tests/support/calls.ts";
import { NEW_SANDBOX, openLifecycle, spoil } from "../../tests/support/lifecycle_setup.ts";
import { rejection } from "../../tests/support/rejections.ts";

Deno.test("create() asks for a sandbox of the pool, and get() reads it back", async () => {
  await using server = startFakeOpenSandbox();
  using api = openLifecycle(server, { url: `${server.url}/v1/` });
  const made = await api.create(NEW_SANDBOX, call);
  assert.deepEqual(server.created, [{
    extensions: { poolRef: "ci-vm" },
    entrypoint: ["/bin/gate"],
    env: { A: "b" },
    metadata: NEW_SANDBOX.metadata,
    timeout: 91,
  }]);
  assert.deepEqual(await api.get(made.id, call), made);
  assert.equal(made.state, "Running");
  assert.deepEqual(made.metadata, NEW_SANDBOX.metadata);
  assert.ok(made.expiresAt !== null && made.expiresAt > made.createdAt - 1e12);
  assert.equal(await api.get("other", call), undefined);
});

Deno.test("patch() sets metadata and leaves the rest, delete() removes; both tell absence", async () => {
  await using server = startFakeOpenSandbox();
  using api = openLifecycle(server);
  const { id } = await api.create(NEW_SANDBOX, call);
  assert.equal(await api.patch(id, { "ci.example.org/terminal": "true" }, call), true);
  assert.deepEqual((await api.get(id, call))?.metadata, {
    ...NEW_SANDBOX.metadata,
    "ci.example.org/terminal": "true",
  });
  assert.equal(await api.delete(id, call), true);
  assert.equal(await api.delete(id, call), false);
  assert.equal(await api.patch(id, {}, call), false);
});

const coded = (code: string) => JSON.stringify({ code, message: "in words" });

const detail = '{"detail":[{"type":"x","loc":["body","env"],"msg":"Input bad","input":"SECRET"}]}';

for (
  const [status, body, code] of [
    [429, coded("KUBERNETES::POOL_CAPACITY_EXHAUSTED"), "pool_full"],
    [504, coded("KUBERNETES::POD_READY_TIMEOUT"), "start_timeout"],
    [500, coded("KUBERNETES::POD_FAILED"), "start_failed"],
    [404, coded("KUBERNETES::POOL_NOT_FOUND"), "pool_missing"],
    [400, coded("SANDBOX::UNSUPPORTED_POOL_REF"), "pool_missing"],
    [403, coded("KUBERNETES::QUOTA_EXCEEDED"), "quota"],
    [403, "", "forbidden"],
    [401, coded("MISSING_API_KEY"), "unauthorized"],
    [400, coded("SANDBOX::INVALID_METADATA_LABEL"), "invalid"],
    [422, detail, "invalid"],
    [405, '{"detail":"Method Not Allowed"}', "invalid"],
    [429, "", "throttled"],
    [500, coded("KUBERNETES::POOL_API_ERROR"), "unknown_outcome"],
    [502, "", "unknown_outcome"],
    [504, "<html>Gateway Timeout</html>", "unknown_outcome"],
    [302, "", "unknown_outcome"],
    [202, "", "unknown_outcome"],
    [202, "<html>Welcome</html>", "unknown_outcome"],
  ] as const
) {
  Deno.test(`create() answered ${status} ${JSON.stringify(body).slice(0, 45)} is ${code}`, async () => {
    await using server = startFakeOpenSandbox();
    using api = openLifecycle(server);
    const headers = { "retry-after": "7" };
    spoil(server, { method: "POST", answer: { kind: "status", status, body, headers } });
    const error = await rejection(SandboxError, api.create(NEW_SANDBOX, call));
    assert.equal(error.code, code);
    assert.equal(error.retryAfterMs, status === 202 ? null : 7_000);
    assert.doesNotMatch(error.message, /SECRET/);
    assert.doesNotMatch(error.message, /: $|: :/);
  });
}

Deno.test("an error without a body is a failure of every call", async () => {
  await using server = startFakeOpenSandbox();
  using api = openLifecycle(server);
  const { id } = await api.create(NEW_SANDBOX, call);
  const answer = { kind: "status", status: 502, body: "" } as const;
  const calls = {
    DELETE: () => api.delete(id, call),
    PATCH: () => api.patch(id, { a: "b" }, call),
    GET: () => api.get(id, call),
  };
  for (const [method, attempt] of Object.entries(calls)) {
    spoil(server, { method, answer });
    assert.equal((await rejection(SandboxError, attempt())).code, "unknown_outcome", method);
  }
  assert.ok(server.sandboxes.has(id));
});

Deno.test("a 404 of somebody else's does not say that a sandbox is gone", async () => {
  await using server = startFakeOpenSandbox();
  using api = openLifecycle(server);
  const answer = { kind: "status", status: 404, body: '{"detail":"Not Found"}' } as const;
  for (const method of ["GET", "DELETE"]) spoil(server, { method, answer });
  assert.equal((await rejection(SandboxError, api.get("x", call))).code, "unknown_outcome");
  assert.equal((await rejection(SandboxError, api.delete("x", call))).code, "unknown_outcome");
});

Deno.test("a lost connection may have done its work, a refused one has not", async () => {
  const server = startFakeOpenSandbox();
  using api = openLifecycle(server);
  spoil(server, { method: "POST", when: "after", answer: { kind: "cut" } });
  assert.equal(
    (await rejection(SandboxError, api.create(NEW_SANDBOX, call))).code,
    "unknown_outcome",
  );
  assert.equal(server.sandboxes.size, 1);
  await server[Symbol.asyncDispose]();
  const error = await rejection(SandboxError, api.create(NEW_SANDBOX, call));
  assert.equal(error.code, "unreachable");
  assert.match(error.message, /connection refused: check OPENSANDBOX_API/);
});

Deno.test("a call ends at its time-out, and with the reason of the caller's signal", async () => {
  await using server = startFakeOpenSandbox();
  using api = openLifecycle(server, { createTimeoutMs: 50, timeoutMs: 60_000 });
  spoil(server, { method: "POST", answer: { kind: "hang" } });
  const late = await rejection(SandboxError, api.create(NEW_SANDBOX, call));
  assert.equal(late.code, "unknown_outcome");
  assert.match(late.message, /no answer within 0.05 s/);
  spoil(server, { method: "GET", answer: { kind: "hang" } });
  const controller = new AbortController();
  const reason = new Error("stopped by the test");
  const waiting = api.list({}, { signal: controller.signal });
  controller.abort(reason);
  await assert.rejects(waiting, reason);
});

Deno.test("nothing but a GET leaves while the process may not act", async () => {
  await using server = startFakeOpenSandbox();
  const reason = new Error("does not lead");
  using api = openLifecycle(server, {
    before() {
      throw reason;
    },
  });
  await assert.rejects(api.create(NEW_SANDBOX, call), reason);
  await assert.rejects(api.patch("x", {}, call), reason);
  await assert.rejects(api.delete("x", call), reason);
  assert.deepEqual(await api.list({}, call), []);
  assert.deepEqual(server.requests.map(({ method }) => method), ["GET"]);
});

Deno.test("status() tells whether the server does its work", async () => {
  const server = startFakeOpenSandbox();
  using api = openLifecycle(server);
  assert.equal(api.status().state, "unknown");
  await rejection(SandboxError, api.create({ ...NEW_SANDBOX, pool: "other" }, call));
  assert.equal(api.status().state, "up");
  await server[Symbol.asyncDispose]();
  await rejection(SandboxError, api.list({}, call));
  assert.equal(api.status().state, "degraded");
  assert.match(api.status().lastError ?? "", /connection refused/);
});
