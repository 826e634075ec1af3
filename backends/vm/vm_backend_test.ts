import assert from "node:assert/strict";
import type { ExecutorChange } from "../../controller/backend.ts";
import { createFakeClock } from "../../lib/fake_clock.ts";
import {
  type FakeOpenSandbox,
  type FakeSandbox,
  startFakeOpenSandbox,
} from "../../tests/fakes/opensandbox.ts";
import { call } from "../../tests/support/calls.ts";
import { eventually } from "../../tests/support/eventually.ts";
import { openLifecycle } from "../../tests/support/lifecycle_setup.ts";
import { refusal } from "../../tests/support/rejections.ts";
import {
  boundIn,
  sandboxMetadata,
  sandboxOf,
  setupVmBackend,
  signedSpec,
  VM_PREFIX,
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

Deno.test("of duplicates the oldest is the executor, and the others are deleted", async () => {
  await using world = setupVmBackend();
  const { backend, server } = world;
  const planted = [1, 2, 3].map(() => server.plant({ metadata: sandboxMetadata(signedSpec("1")) }));
  assert.equal((await backend.find(signedSpec("1").name, call))?.uid, planted[0]?.id);
  const listed = await backend.list(call);
  await backend.tidy?.(call);
  assert.deepEqual(listed.map(({ uid }) => uid), [planted[0]?.id]);
  assert.deepEqual([...server.sandboxes.keys()], [planted[0]?.id]);
});

Deno.test("of duplicates the one whose identity was bound is the executor, whatever its age", async () => {
  await using world = setupVmBackend();
  const { backend, server } = world;
  server.plant({ metadata: sandboxMetadata(signedSpec("1")) });
  const bound = { ...sandboxMetadata(signedSpec("1")), [`${VM_PREFIX}/identity`]: "bound" };
  const kept = server.plant({ metadata: bound });
  assert.equal((await backend.find(signedSpec("1").name, call))?.uid, kept.id);
  await backend.list(call);
  await backend.tidy?.(call);
  assert.deepEqual([...server.sandboxes.keys()], [kept.id]);
});

Deno.test("the one that a create gave out is the executor, not an older one that shows later", async () => {
  await using world = setupVmBackend();
  const { backend, server } = world;
  const made = await backend.create(signedSpec("1"), call);
  const createdAt = new Date(0).toISOString();
  const older = server.plant({ metadata: sandboxMetadata(signedSpec("1")), createdAt });
  await assert.rejects(
    backend.bindIdentity({ ...made, uid: older.id }, signedSpec("1").assignment, call),
    /it is gone/,
  );
  await backend.bindIdentity(made, signedSpec("1").assignment, call);
  await backend.list(call);
  await backend.tidy?.(call);
  assert.deepEqual([...server.sandboxes.keys()], [made.uid]);
});

Deno.test("one of our name with another signature is left alone, whoever goes", async () => {
  await using world = setupVmBackend();
  const { backend, server } = world;
  const made = await backend.create(signedSpec("1"), call);
  const other = server.plant({ metadata: sandboxMetadata(signedSpec("1", "6".repeat(64))) });
  await backend.list(call);
  await backend.delete(made, call);
  assert.deepEqual([...server.sandboxes.keys()], [other.id]);
  assert.equal((await refusal(backend.create(signedSpec("1"), call))).code, "conflict");
});

Deno.test("delete() takes the duplicates with it", async () => {
  await using world = setupVmBackend();
  const { backend, server } = world;
  const made = await backend.create(signedSpec("1"), call);
  server.plant({ metadata: sandboxMetadata(signedSpec("1")) });
  await backend.delete(made, call);
  assert.equal(server.sandboxes.size, 0);
});

Deno.test("an executor of another instance is listed, and never looked up or deleted as ours", async () => {
  await using world = setupVmBackend();
  const { backend, server } = world;
  const metadata = { ...sandboxMetadata(signedSpec("1")), [`${VM_PREFIX}/instance`]: "ffffffffff" };
  const foreign = server.plant({ metadata });
  assert.deepEqual((await backend.list(call)).map(({ name }) => name), ["ci-ffffffffff-1"]);
  await backend.create(signedSpec("1"), call);
  assert.ok(server.sandboxes.has(foreign.id));
});

Deno.test("list() shows what cannot be read, with the reason, beside 250 others", async () => {
  await using world = setupVmBackend();
  const { backend, server } = world;
  for (let task = 1; task <= 250; task++) {
    server.plant({ metadata: sandboxMetadata(signedSpec(String(task))) });
  }
  const without = (sandbox: FakeSandbox, keep: (key: string) => boolean) => {
    sandbox.metadata = Object.fromEntries(
      Object.entries(sandbox.metadata).filter(([key]) => keep(key)),
    );
  };
  without(sandboxOf(server, signedSpec("3").name), (key) => !key.endsWith("/annotations-002"));
  without(sandboxOf(server, signedSpec("4").name), (key) => !key.includes("/annotations-"));
  without(sandboxOf(server, signedSpec("5").name), (key) => !key.endsWith("/assignment-id"));
  const all = await backend.list(call);
  assert.equal(all.length, 250);
  const details = all.flatMap(({ waiting }) => waiting === null ? [] : [waiting.detail]);
  assert.deepEqual(details, [
    "sandbox annotation metadata chunks are incomplete",
    "sandbox annotation metadata is missing",
  ]);
  const stranger = all.find(({ name, uid }) => name as string === uid);
  assert.ok(stranger !== undefined);
  await backend.delete(stranger, call);
  assert.equal(server.sandboxes.has(stranger.uid), false);
});

Deno.test("bindIdentity() refuses a sandbox whose identity is another's or cannot be read", async () => {
  await using world = setupVmBackend();
  const { backend, server } = world;
  const made = await backend.create(signedSpec("1"), call);
  const error = await refusal(backend.bindIdentity(made, signedSpec("2").assignment, call));
  assert.equal(error.code, "invalid");
  assert.match(
    error.message,
    new RegExp(`sandbox ${made.uid} has inconsistent SPIFFE identity metadata`),
  );
  delete sandboxOf(server, made.name).metadata[`${VM_PREFIX}/annotations-000`];
  const unread = await refusal(backend.bindIdentity(made, signedSpec("1").assignment, call));
  assert.match(unread.message, /sandbox annotation metadata chunks are incomplete/);
  assert.equal(boundIn(sandboxOf(server, made.name).metadata), null);
});

Deno.test("a sandbox that has not started has no identity target, and says why", async () => {
  await using world = setupVmBackend();
  const { backend, server } = world;
  const status = { state: "Pending", reason: "POOL_CAPACITY_EXHAUSTED", message: "no pod" };
  server.plant({ metadata: sandboxMetadata(signedSpec("1")), status });
  const found = await backend.find(signedSpec("1").name, call);
  assert.equal(found?.identityTarget, null);
  assert.deepEqual(found?.waiting, { code: "quota", detail: "POOL_CAPACITY_EXHAUSTED: no pod" });
});

Deno.test("marks of one sandbox are written one after the other", async () => {
  let now = 0;
  let most = 0;
  await using world = setupVmBackend({}, (api) => ({
    async patch(id, metadata, call) {
      now++;
      most = Math.max(most, now);
      const done = await api.patch(id, metadata, call);
      now--;
      return done;
    },
  }));
  const { backend } = world;
  const made = await backend.create(signedSpec("1"), call);
  await Promise.all([
    backend.markTerminal(made, call),
    backend.bindIdentity(made, signedSpec("1").assignment, call),
    backend.markTerminal(made, call),
  ]);
  assert.equal(most, 1);
});

Deno.test("one whose lifetime is over says so; one that somebody deleted is gone", async () => {
  const clock = createFakeClock();
  await using world = setupVmBackend({ clock });
  const { backend, server } = world;
  const expiresAt = new Date(clock.now() + 3_600_000).toISOString();
  const [one, two] = [signedSpec("1"), signedSpec("2")];
  const expired = server.plant({ metadata: sandboxMetadata(one), expiresAt });
  const deleted = server.plant({ metadata: sandboxMetadata(two), expiresAt });
  assert.equal((await backend.list(call)).length, 2);
  server.sandboxes.delete(deleted.id);
  assert.equal(await backend.find(two.name, call), undefined);
  await clock.advance(3_600_000);
  server.sandboxes.delete(expired.id);
  const [left, ...more] = await backend.list(call);
  assert.deepEqual(more, []);
  assert.equal(left?.uid, expired.id);
  assert.equal(left?.ended?.code, "executor_lost");
  assert.match(left?.ended?.detail ?? "", /lifetime.*VM_TIMEOUT_SECONDS: 14400 s/);
  assert.equal((await backend.find(one.name, call))?.phase, "Expired");
  await backend.delete({ name: one.name, uid: expired.id }, call);
  assert.deepEqual(await backend.list(call), []);
});

Deno.test("one that had ended before its lifetime was over says how it had ended", async () => {
  const clock = createFakeClock();
  await using world = setupVmBackend({ clock });
  const { backend, server } = world;
  const expiresAt = new Date(clock.now() + 60_000).toISOString();
  const status = { state: "Failed", reason: "TASK_FAILED", message: "" };
  const { id } = server.plant({ metadata: sandboxMetadata(signedSpec("1")), expiresAt, status });
  await backend.list(call);
  await clock.advance(60_000);
  server.sandboxes.delete(id);
  const [left] = await backend.list(call);
  assert.equal(left?.uid, id);
  assert.equal(left?.ended?.code, "executor_failed");
  assert.match(left?.ended?.detail ?? "", /TASK_FAILED/);
});

Deno.test("watch() makes one list for all, and none gone by a list that fails or lacks one", async () => {
  const clock = createFakeClock();
  await using world = setupVmBackend({ clock, pollMs: 5_000 });
  const { backend, server } = world;
  for (let task = 1; task <= 40; task++) {
    server.plant({ metadata: sandboxMetadata(signedSpec(String(task))) });
  }
  const controller = new AbortController();
  const seen: ExecutorChange[] = [];
  const watching = (async () => {
    for await (const change of backend.watch({ signal: controller.signal })) seen.push(change);
  })();
  await eventually(() => seen.length === 40 && clock.pending > 0, { what: "all of them" });
  const asked = server.requests.length;
  assert.equal(asked, 1);
  const body = JSON.stringify({ code: "SANDBOX_LIST_UNAVAILABLE", message: "away" });
  const fault = { kind: "status", status: 503, body } as const;
  server.faults.push({ method: "GET", when: "before", answer: fault });
  await clock.advance(5_000);
  await eventually(() => server.requests.length === 2 && clock.pending > 0, { what: "a list" });
  // One page of a list that misses somebody.
  const empty = { page: 1, pageSize: 100, totalItems: 0, totalPages: 0, hasNextPage: false };
  const none = JSON.stringify({ items: [], pagination: empty });
  server.faults.push({
    method: "GET",
    when: "before",
    answer: { kind: "status", status: 200, body: none },
  });
  await clock.advance(5_000);
  await eventually(() => server.requests.length === 43 && clock.pending > 0, { what: "looks" });
  assert.equal(seen.length, 40);
  server.sandboxes.delete(sandboxOf(server, signedSpec("7").name).id);
  await clock.advance(5_000);
  await eventually(() => seen.length > 40, { what: "a change" });
  assert.deepEqual(seen.slice(40), [{ name: signedSpec("7").name, executor: null }]);
  controller.abort();
  await watching;
});

Deno.test("watch() tells of one that was deleted before any list had shown it", async () => {
  const clock = createFakeClock(0);
  await using world = setupVmBackend({ clock, pollMs: 5_000 });
  const { backend, server } = world;
  const controller = new AbortController();
  const seen: ExecutorChange[] = [];
  const watching = (async () => {
    for await (const change of backend.watch({ signal: controller.signal })) seen.push(change);
  })();
  await eventually(() => server.requests.length === 1 && clock.pending > 0, { what: "a list" });
  const { name, uid } = await backend.create(signedSpec("1"), call);
  server.sandboxes.delete(uid);
  await clock.advance(5_000);
  await eventually(() => seen.length > 0, { what: "a change" });
  assert.deepEqual(seen, [{ name, executor: null }]);
  controller.abort();
  await watching;
});

Deno.test("nothing is deleted or written by a process that may not act any more", async () => {
  await using world = setupVmBackend();
  const made = await world.backend.create(signedSpec("1"), call);
  world.server.plant({ metadata: sandboxMetadata(signedSpec("1")) });
  const backend = world.next({
    guard() {
      throw new Error("does not lead");
    },
  });
  assert.equal((await backend.list(call)).length, 1, "a list only looks");
  await assert.rejects(async () => await backend.tidy?.(call), /does not lead/);
  await assert.rejects(backend.delete(made, call), /does not lead/);
  await assert.rejects(
    backend.bindIdentity(made, signedSpec("1").assignment, call),
    /does not lead/,
  );
  await assert.rejects(backend.create(signedSpec("2"), call), /does not lead/);
  assert.equal(world.server.sandboxes.size, 2);
});
