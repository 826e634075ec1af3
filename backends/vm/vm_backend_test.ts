import assert from "node:assert/strict";
import type { ExecutorChange } from "../../controller/backend.ts";
import { createFakeClock } from "../../lib/fake_clock.ts";
import type { FakeSandbox } from "../../tests/fakes/opensandbox.ts";
import { call } from "../../tests/support/calls.ts";
import { eventually } from "../../tests/support/eventually.ts";
import { refusal } from "../../tests/support/rejections.ts";
import {
  boundIn,
  sandboxMetadata,
  sandboxOf,
  setupVmBackend,
  signedSpec,
  VM_PREFIX,
} from "../../tests/support/vm_backend_setup.ts";

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
