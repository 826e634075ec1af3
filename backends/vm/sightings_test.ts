import assert from "node:assert/strict";
import type { FakeSandbox } from "../../tests/fakes/opensandbox.ts";
import { call } from "../../tests/support/calls.ts";
import {
  sandboxMetadata,
  setupVmBackend,
  signedSpec,
  VM_PREFIX,
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
