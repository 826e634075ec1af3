import assert from "node:assert/strict";
import { call } from "../../tests/support/calls.ts";
import { refusal } from "../../tests/support/rejections.ts";
import {
  sandboxMetadata,
  setupVmBackend,
  signedSpec,
  VM_PREFIX,
} from "../../tests/support/vm_backend_setup.ts";

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
