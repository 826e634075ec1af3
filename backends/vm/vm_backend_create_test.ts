import assert from "node:assert/strict";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { type FakeOpenSandbox, startFakeOpenSandbox } from "../../tests/fakes/opensandbox.ts";
import { call } from "../../tests/support/calls.ts";
import { eventually } from "../../tests/support/eventually.ts";
import { openLifecycle } from "../../tests/support/lifecycle_setup.ts";
import { refusal, rejectsWith } from "../../tests/support/rejections.ts";
import {
  sandboxMetadata,
  setupVmBackend,
  signedSpec,
  vmBackend,
} from "../../tests/support/vm_backend_setup.ts";

function answer(server: FakeOpenSandbox, code: string, status: number, message = "in words") {
  const body = JSON.stringify({ code, message });
  server.faults.push({ method: "POST", when: "before", answer: { kind: "status", status, body } });
}

const creates = (server: FakeOpenSandbox) =>
  server.requests.filter(({ method }) => method === "POST").length;

Deno.test("create() asks for the pool, the image's program, the lifetime and the Workload API", async () => {
  await using world = setupVmBackend();
  await world.backend.create(signedSpec("7"), call);
  const [body] = world.server.created as Record<string, unknown>[];
  assert.deepEqual(body?.extensions, { poolRef: "ci-vm" });
  assert.equal(body?.timeout, 14_400);
  assert.deepEqual((body?.entrypoint as string[]).at(-1), "/opt/identity-gate/gate.mjs");
  const { SPIFFE_ENDPOINT_SOCKET } = body?.env as Record<string, string>;
  assert.equal(SPIFFE_ENDPOINT_SOCKET, "unix:///run/spire/agent.sock");
  assert.deepEqual(body?.metadata, sandboxMetadata(signedSpec("7")));
});

for (
  const [status, code, expected, words] of [
    [429, "KUBERNETES::POOL_CAPACITY_EXHAUSTED", "quota", /in words/],
    [504, "KUBERNETES::POD_READY_TIMEOUT", "quota", /in words/],
    [403, "KUBERNETES::QUOTA_EXCEEDED", "quota", /in words: raise the quota of the sandboxes/],
    [404, "KUBERNETES::POOL_NOT_FOUND", "refused", /in words: check OPENSANDBOX_POOL$/],
    [401, "INVALID_API_KEY", "refused", /check OPENSANDBOX_API_KEY$/],
    [
      401,
      "",
      "refused",
      /check OPENSANDBOX_API_KEY, and that OPENSANDBOX_API leads to OpenSandbox$/,
    ],
    [400, "SANDBOX::INVALID_METADATA_LABEL", "invalid", /in words/],
    [500, "KUBERNETES::POOL_API_ERROR", "unknown_outcome", /in words/],
  ] as const
) {
  Deno.test(`create() is ${expected} when the server answers ${code}`, async () => {
    await using world = setupVmBackend();
    answer(world.server, code, status);
    const error = await refusal(world.backend.create(signedSpec("1"), call));
    assert.equal(error.code, expected);
    assert.match(error.message, /^Make executor "ci-0011223344-1": /);
    assert.match(error.message, words);
    assert.equal(world.server.sandboxes.size, 0);
  });
}

Deno.test("create() is refused when the server is away: surely nothing was made", async () => {
  const server = startFakeOpenSandbox();
  await server[Symbol.asyncDispose]();
  using api = openLifecycle(server);
  // It goes away after the name was looked up.
  const backend = vmBackend({ ...api, list: () => Promise.resolve([]) });
  const error = await refusal(backend.create(signedSpec("1"), call));
  assert.equal(error.code, "refused");
  assert.match(error.message, /connection refused/);
});

Deno.test("create() that ran into a start's time limit is in doubt while its sandbox is there", async () => {
  await using world = setupVmBackend();
  const body = JSON.stringify({ code: "KUBERNETES::POD_READY_TIMEOUT", message: "late" });
  world.server.faults.push({
    method: "POST",
    when: "after",
    answer: { kind: "status", status: 504, body },
  });
  assert.equal(
    (await refusal(world.backend.create(signedSpec("1"), call))).code,
    "unknown_outcome",
  );
});

Deno.test("nothing is made under a name while a lost create may still come through", async () => {
  const clock = createFakeClock();
  await using world = setupVmBackend({ clock, doubtMs: 20_000 });
  const { backend, server } = world;
  const spec = signedSpec("1");
  server.faults.push({ method: "POST", when: "before", answer: { kind: "cut" } });
  assert.equal((await refusal(backend.create(spec, call))).code, "unknown_outcome");
  await clock.advance(10_000);
  const error = await refusal(backend.create(spec, call));
  assert.equal(error.code, "unknown_outcome");
  assert.match(error.message, /may still come through: looked for for 10 s more/);
  assert.equal(creates(server), 1);
  const other = backend.create(signedSpec("2"), call); // Only this name waits.
  await clock.advance(1_000);
  await other;
  await clock.advance(10_000);
  await backend.create(spec, call);
});

Deno.test("a create that its caller has left is waited for by whoever looks next", async () => {
  await using world = setupVmBackend();
  const { backend, server } = world;
  const { promise, resolve } = Promise.withResolvers<void>();
  server.gate = promise;
  const controller = new AbortController();
  const reason = new Error("cancelled");
  const making = backend.create(signedSpec("1"), { signal: controller.signal });
  await eventually(() => creates(server) === 1, { what: "the request" });
  controller.abort(reason);
  await assert.rejects(making, reason);
  assert.equal((await refusal(backend.create(signedSpec("1"), call))).code, "conflict");
  let listed = false;
  server.onPage = () => void (listed = true);
  const finding = backend.find(signedSpec("1").name, call);
  await eventually(() => listed, { what: "a list that lacks it" });
  resolve();
  const found = await finding;
  assert.deepEqual(found?.metadata, signedSpec("1").metadata);
});

Deno.test("a start that failed is told as an executor that has ended, until it is deleted", async () => {
  await using world = setupVmBackend();
  const { backend, server } = world;
  answer(server, "KUBERNETES::POD_FAILED", 500, "Pod x: ImagePullBackOff - no such image");
  const made = await backend.create(signedSpec("1"), call);
  assert.equal(made.ended?.code, "image_pull");
  assert.match(made.ended?.detail ?? "", /ImagePullBackOff/);
  assert.deepEqual(await backend.find(made.name, call), made);
  assert.deepEqual(await backend.list(call), [made]);
  assert.equal((await refusal(backend.create(signedSpec("1"), call))).code, "conflict");
  await backend.delete({ name: made.name, uid: "other" }, call);
  assert.deepEqual(await backend.list(call), [made]);
  await backend.delete(made, call);
  assert.equal(await backend.find(made.name, call), undefined);
  assert.equal((await backend.create(signedSpec("1"), call)).ended, null);
});

Deno.test("what a leader was making when it stepped down is the next one's executor", async () => {
  await using server = startFakeOpenSandbox();
  const { promise, resolve } = Promise.withResolvers<void>();
  server.gate = promise;
  const spec = signedSpec("1");
  const mine = openLifecycle(server);
  const making = rejectsWith("unknown_outcome", vmBackend(mine).create(spec, call));
  await eventually(() => server.created.length === 1, { what: "the request" });
  mine[Symbol.dispose]();
  await making;
  resolve();
  await eventually(() => server.sandboxes.size === 1, { what: "the sandbox" });
  using theirs = openLifecycle(server);
  const next = vmBackend(theirs);
  const found = await next.find(spec.name, call);
  assert.deepEqual(found?.metadata, spec.metadata);
  await assert.rejects(next.create(spec, call), /the name is taken/);
  if (found !== undefined) await next.bindIdentity(found, spec.assignment, call);
  assert.equal(server.sandboxes.size, 1);
});

Deno.test("a start that failed and left its sandbox is told by that sandbox, once", async () => {
  await using world = setupVmBackend();
  const { server, backend } = world;
  const spec = signedSpec("1");
  const body = JSON.stringify({ code: "KUBERNETES::POD_FAILED", message: "ImagePullBackOff" });
  server.faults.push({
    method: "POST",
    when: "after",
    answer: { kind: "status", status: 500, body },
  });
  await rejectsWith("unknown_outcome", backend.create(spec, call));
  const [left] = server.sandboxes.values();
  assert.ok(left !== undefined);
  left.status.state = "Failed";
  left.status.message = "ImagePullBackOff";
  const found = await backend.find(spec.name, call);
  assert.equal(found?.uid, left.id);
  assert.equal(found?.ended?.code, "image_pull");
  await backend.delete({ name: spec.name, uid: left.id }, call);
  assert.equal(await backend.find(spec.name, call), undefined, "nothing is told a second time");
});

Deno.test("a start that failed is told at once, though its sandbox still goes away", async () => {
  await using world = setupVmBackend();
  const { server, backend } = world;
  const spec = signedSpec("1");
  const status = { state: "Stopping", reason: "DELETING", message: "" };
  const body = JSON.stringify({ code: "KUBERNETES::POD_FAILED", message: "ImagePullBackOff" });
  server.faults.push({
    method: "POST",
    when: "before",
    answer: { kind: "status", status: 500, body },
  });
  const made = await backend.create(spec, call);
  const going = server.plant({ metadata: sandboxMetadata(spec), status });
  const found = await backend.find(spec.name, call);
  assert.equal(found?.uid, made.uid);
  assert.equal(found?.ended?.code, "image_pull");
  await backend.delete(made, call);
  assert.equal((await backend.find(spec.name, call))?.uid, going.id);
});

Deno.test("find() finds what a create that nobody waits for has made during the look", async () => {
  const server = startFakeOpenSandbox();
  await using _server = server;
  using api = openLifecycle(server);
  const mayAnswer = Promise.withResolvers<void>();
  const made = Promise.withResolvers<void>();
  let isSlow = false;
  const backend = vmBackend({
    ...api,
    async create(sandbox, options) {
      await mayAnswer.promise;
      const created = await api.create(sandbox, options);
      setTimeout(made.resolve, 0);
      return created;
    },
    async list(query, options) {
      const answer = await api.list(query, options);
      if (!isSlow) return answer;
      // What the server said is old by the time it is heard.
      isSlow = false;
      mayAnswer.resolve();
      await made.promise;
      return answer;
    },
  });
  const spec = signedSpec("1");
  const leaving = new AbortController();
  const making = backend.create(spec, { signal: leaving.signal });
  await eventually(() => server.requests.length > 0, { what: "the look before the create" });
  leaving.abort(new Error("left"));
  await assert.rejects(making, /left/);
  isSlow = true;
  assert.equal((await backend.find(spec.name, call))?.name, spec.name);
});
