import assert from "node:assert/strict";
import { type FakeSandbox, startFakeOpenSandbox } from "../../tests/fakes/opensandbox.ts";
import { call } from "../../tests/support/calls.ts";
import { eventually } from "../../tests/support/eventually.ts";
import { openLifecycle } from "../../tests/support/lifecycle_setup.ts";
import { rejectsWith } from "../../tests/support/rejections.ts";
import {
  sandboxMetadata,
  setupVmBackend,
  signedSpec,
  VM_PREFIX,
  vmBackend,
} from "../../tests/support/vm_backend_setup.ts";
import type { Sandboxes } from "./sandboxes.ts";

/** A list from a cache that knows nothing of these. */
function hide(hidden: ReadonlySet<string>, api: Sandboxes): Partial<Sandboxes> {
  return {
    list: async (metadata, call) =>
      (await api.list(metadata, call)).filter(({ id }) => !hidden.has(id)),
  };
}

const bindingOf = ({ metadata }: FakeSandbox) => metadata[`${VM_PREFIX}/identity`];

Deno.test("of duplicates the recorded one is the executor, though nobody is bound and it is the younger", async () => {
  const recorded = { uid: "" };
  await using world = setupVmBackend({
    recordedUid: (task) => Promise.resolve(task as string === "1" ? recorded.uid : null),
  });
  const { server } = world;
  const spec = signedSpec("1");
  const [older, younger] = [1, 2].map(() => server.plant({ metadata: sandboxMetadata(spec) }));
  recorded.uid = younger?.id ?? "";
  // The process that made it has ended before the binding.
  const backend = world.next();
  assert.equal((await backend.find(spec.name, call))?.uid, younger?.id);
  assert.deepEqual((await backend.list(call)).map(({ uid }) => uid), [younger?.id]);
  await backend.tidy?.(call);
  assert.deepEqual([...server.sandboxes.keys()], [younger?.id]);
  const found = await backend.find(spec.name, call);
  assert.ok(found !== undefined && older !== undefined);
  await backend.bindIdentity(found, spec.assignment, call);
});

Deno.test("the record counts more than a mark on the sandbox, which others may set or take off", async () => {
  const recorded = { uid: "" };
  await using world = setupVmBackend({ recordedUid: () => Promise.resolve(recorded.uid) });
  const { server, backend } = world;
  const bound = { ...sandboxMetadata(signedSpec("1")), [`${VM_PREFIX}/identity`]: "bound" };
  server.plant({ metadata: bound });
  recorded.uid = server.plant({ metadata: sandboxMetadata(signedSpec("1")) }).id;
  assert.equal((await backend.find(signedSpec("1").name, call))?.uid, recorded.uid);
});

Deno.test("records are asked only where several sandboxes are of one name, and of this instance", async () => {
  const asked: string[] = [];
  await using world = setupVmBackend({
    recordedUid(task) {
      asked.push(task);
      return Promise.resolve(null);
    },
  });
  const { server, backend } = world;
  server.plant({ metadata: sandboxMetadata(signedSpec("1")) });
  for (const _ of [1, 2]) {
    server.plant({
      metadata: { ...sandboxMetadata(signedSpec("2")), [`${VM_PREFIX}/instance`]: "ffffffffff" },
    });
  }
  await backend.list(call);
  assert.deepEqual(asked, []);
});

Deno.test("find() and list() ask for one that a list lacks, and take it for gone only then", async () => {
  const hidden = new Set<string>();
  await using world = setupVmBackend({}, (api) => hide(hidden, api));
  const { server, backend } = world;
  const made = await backend.create(signedSpec("1"), call);
  hidden.add(made.uid);
  assert.equal((await backend.find(made.name, call))?.uid, made.uid);
  assert.deepEqual((await backend.list(call)).map(({ uid }) => uid), [made.uid]);
  await backend.bindIdentity(made, signedSpec("1").assignment, call);
  assert.equal(bindingOf([...server.sandboxes.values()][0] as FakeSandbox), "bound");
  server.sandboxes.delete(made.uid);
  assert.deepEqual(await backend.list(call), []);
  assert.equal(await backend.find(made.name, call), undefined);
  const asked = server.requests.length;
  await backend.list(call);
  assert.equal(server.requests.length, asked + 1, "nobody looks for it any more");
});

Deno.test("find() takes no duplicate for the executor because a list lacks that", async () => {
  const hidden = new Set<string>();
  const recorded = { uid: "" };
  await using world = setupVmBackend(
    { recordedUid: () => Promise.resolve(recorded.uid) },
    (api) => hide(hidden, api),
  );
  const { server, backend } = world;
  recorded.uid = (await backend.create(signedSpec("1"), call)).uid;
  hidden.add(recorded.uid);
  const other = server.plant({ metadata: sandboxMetadata(signedSpec("1")) });
  assert.equal((await backend.find(signedSpec("1").name, call))?.uid, recorded.uid);
  assert.deepEqual((await backend.list(call)).map(({ uid }) => uid), [recorded.uid]);
  server.sandboxes.delete(recorded.uid);
  assert.equal((await backend.find(signedSpec("1").name, call))?.uid, other.id);
});

Deno.test("list() goes on telling of one that it lacks while that cannot be looked at", async () => {
  const hidden = new Set<string>();
  await using world = setupVmBackend({}, (api) => hide(hidden, api));
  const { server, backend } = world;
  const made = await backend.create(signedSpec("1"), call);
  hidden.add(made.uid);
  const answer = { kind: "status", status: 500, body: "" } as const;
  server.faults.push({ method: "GET", when: "before", answer, path: /sandboxes\/./ });
  assert.deepEqual((await backend.list(call)).map(({ uid }) => uid), [made.uid]);
  server.sandboxes.delete(made.uid);
  assert.deepEqual(await backend.list(call), []);
});

Deno.test("delete() deletes exactly that one, also when lists lack it", async () => {
  const hidden = new Set<string>();
  await using world = setupVmBackend({}, (api) => hide(hidden, api));
  const made = await world.backend.create(signedSpec("1"), call);
  hidden.add(made.uid);
  await world.next().delete(made, call);
  assert.equal(world.server.sandboxes.size, 0);
});

Deno.test("delete() deletes one whose labels somebody has taken off", async () => {
  await using world = setupVmBackend();
  const { server, backend } = world;
  const made = await backend.create(signedSpec("1"), call);
  const sandbox = server.sandboxes.get(made.uid);
  assert.ok(sandbox !== undefined);
  sandbox.metadata = {};
  await backend.delete(made, call);
  assert.equal(server.sandboxes.size, 0);
});

Deno.test("tidy() goes on when a duplicate cannot be deleted, and tries again after the next list", async () => {
  await using world = setupVmBackend();
  const { server, backend } = world;
  const [kept] = [1, 2].map(() => server.plant({ metadata: sandboxMetadata(signedSpec("1")) }));
  const body = JSON.stringify({ code: "KUBERNETES::API_ERROR", message: "away" });
  const answer = { kind: "status", status: 500, body } as const;
  server.faults.push({ method: "DELETE", when: "before", answer });
  assert.deepEqual((await backend.list(call)).map(({ uid }) => uid), [kept?.id]);
  await backend.tidy?.(call);
  assert.equal(server.sandboxes.size, 2);
  await backend.list(call);
  await backend.tidy?.(call);
  assert.deepEqual([...server.sandboxes.keys()], [kept?.id]);
});

Deno.test("one that gets its identity while a list is under way is not deleted by it", async () => {
  await using world = setupVmBackend();
  const { server, backend } = world;
  const planted = [1, 2].map(() => server.plant({ metadata: sandboxMetadata(signedSpec("1")) }));
  const younger = planted[1];
  server.onPage = () => {
    server.onPage = null;
    // Another part of this process, after the page was read.
    if (younger !== undefined) younger.metadata[`${VM_PREFIX}/identity`] = "bound";
  };
  await backend.list(call);
  await backend.tidy?.(call);
  assert.deepEqual([...server.sandboxes.keys()], [younger?.id]);
});

Deno.test("a binding and a deletion of duplicates wait for each other", async () => {
  const recorded = { uid: "" };
  const { promise, resolve } = Promise.withResolvers<void>();
  const order: string[] = [];
  await using world = setupVmBackend(
    { recordedUid: () => Promise.resolve(recorded.uid) },
    (api) => ({
      async patch(id, metadata, call) {
        order.push("patch");
        await promise;
        const done = await api.patch(id, metadata, call);
        order.push("patched");
        return done;
      },
      async delete(id, call) {
        order.push("delete");
        return await api.delete(id, call);
      },
    }),
  );
  const { server, backend } = world;
  server.plant({ metadata: sandboxMetadata(signedSpec("1")) });
  recorded.uid = server.plant({ metadata: sandboxMetadata(signedSpec("1")) }).id;
  const found = await backend.find(signedSpec("1").name, call);
  assert.ok(found !== undefined);
  await backend.list(call);
  const binding = backend.bindIdentity(found, signedSpec("1").assignment, call);
  const tidying = backend.tidy?.(call);
  const other = backend.find(signedSpec("2").name, call);
  await other;
  resolve();
  await Promise.all([binding, tidying]);
  assert.deepEqual(order, ["patch", "patched", "delete"]);
  assert.deepEqual([...server.sandboxes.keys()], [recorded.uid]);
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

for (
  const [state, waits, target] of [
    ["Pausing", /^Pausing: resume the sandbox/, true],
    ["Paused", /^Paused: resume the sandbox/, true],
    ["Resuming", /^Resuming: resume the sandbox/, true],
    ["Allocated", /^IP_ASSIGNED/, false],
    ["Pending", /^IP_ASSIGNED/, false],
    ["Hibernating", null, true],
    ["Running", null, true],
  ] as const
) {
  Deno.test(`a sandbox that is ${state} ${target ? "has" : "has no"} identity target`, async () => {
    await using world = setupVmBackend();
    const { server, backend } = world;
    const status = { state, reason: "IP_ASSIGNED", message: "" };
    server.plant({ metadata: sandboxMetadata(signedSpec("1")), status });
    const found = await backend.find(signedSpec("1").name, call);
    assert.equal(found?.phase, state);
    assert.equal(found?.identityTarget !== null, target);
    assert.equal(found?.ended, null);
    if (waits === null) assert.equal(found?.waiting, null);
    else assert.match(found?.waiting?.detail ?? "", waits);
  });
}
