import assert from "node:assert/strict";
import { ClusterError } from "./cluster.ts";
import { call } from "../../tests/support/calls.ts";
import { INSTANCE, PREFIX, setupPodBackend, SPEC } from "../../tests/support/pod_backend_setup.ts";
import { rejectsWith } from "../../tests/support/rejections.ts";

Deno.test("bindIdentity() makes one entry, labelled as our instance's", async () => {
  const { cluster, bound, entry } = setupPodBackend();
  const { uid } = await bound();
  assert.deepEqual(entry()?.spec, {
    spiffeID: SPEC.assignment.identity.spiffeId,
    parentID: "spiffe://example.org/node/test",
    selectors: [`k8s:pod-uid:${uid}`, "unix:uid:2000"],
    className: "test",
    x509SVIDTTL: "300s",
  });
  assert.deepEqual(entry()?.labels, {
    [`${PREFIX}/runner`]: "true",
    [`${PREFIX}/instance`]: INSTANCE,
    [`${PREFIX}/assignment-id`]: "gitea-task-1",
  });
  assert.equal(cluster.entries.size, 1);
});

Deno.test("bindIdentity() leaves an entry that says the same, in whatever order", async () => {
  const { cluster, backend, bound, entry } = setupPodBackend();
  const made = await bound();
  const before = entry();
  assert.ok(before?.spec.selectors !== undefined);
  const selectors = before.spec.selectors.toReversed();
  cluster.putEntry({ ...before, spec: { ...before.spec, selectors } });
  await backend.bindIdentity(made, SPEC.assignment, call);
  assert.equal(entry()?.uid, before.uid);
});

Deno.test("bindIdentity() makes an entry again that somebody has deleted", async () => {
  const { cluster, backend, bound, entry } = setupPodBackend();
  const made = await bound();
  const before = entry();
  assert.ok(before !== undefined);
  await cluster.deleteEntry(before, call);
  await backend.bindIdentity(made, SPEC.assignment, call);
  assert.deepEqual(entry()?.spec, before.spec);
});

Deno.test("bindIdentity() replaces the entry of an earlier Pod of that name", async () => {
  const { cluster, backend, bound, entry } = setupPodBackend();
  await bound();
  const old = entry()?.uid;
  cluster.remove(SPEC.name);
  const next = await backend.create(SPEC, call);
  await backend.bindIdentity(next, SPEC.assignment, call);
  assert.notEqual(entry()?.uid, old);
  assert.ok(entry()?.spec.selectors?.includes(`k8s:pod-uid:${next.uid}`));
});

Deno.test("bindIdentity() is a conflict when somebody else has an entry of that name", async () => {
  const { cluster, backend, entry } = setupPodBackend();
  cluster.putEntry({ name: SPEC.name, labels: { [`${PREFIX}/instance`]: "ffffffffff" } });
  const before = entry();
  const made = await backend.create(SPEC, call);
  await rejectsWith("conflict", backend.bindIdentity(made, SPEC.assignment, call));
  await backend.delete(made, call);
  assert.deepEqual(entry(), before);
});

Deno.test("bindIdentity() gives up for now when the entry is made and deleted all the time", async () => {
  const { cluster, backend } = setupPodBackend();
  const made = await backend.create(SPEC, call);
  cluster.faults.failing.set("createEntry", new ClusterError("already_exists", "it is there"));
  await rejectsWith("unavailable", backend.bindIdentity(made, SPEC.assignment, call));
});

Deno.test("bindIdentity() names the node in the parent, asked each time", async () => {
  const agentId = "spiffe://example.org/spire/agent/k8s_psat/test/{nodeUID}";
  const { cluster, backend, entry } = setupPodBackend({ agentId });
  cluster.faults.holdStarts = true;
  const made = await backend.create(SPEC, call);
  assert.equal(made.identityTarget, null);
  await rejectsWith("unavailable", backend.bindIdentity(made, SPEC.assignment, call));
  cluster.schedule(SPEC.name, "node-2");
  await rejectsWith("unavailable", backend.bindIdentity(made, SPEC.assignment, call));
  cluster.nodes.set("node-2", "uid-of-node-2");
  const placed = await backend.find(SPEC.name, call);
  assert.equal(placed?.identityTarget, made.uid);
  await backend.bindIdentity(made, SPEC.assignment, call);
  const parent = "spiffe://example.org/spire/agent/k8s_psat/test/";
  assert.equal(entry()?.spec.parentID, `${parent}uid-of-node-2`);
  cluster.nodes.set("node-2", "uid-of-another");
  await backend.bindIdentity(made, SPEC.assignment, call);
  assert.equal(entry()?.spec.parentID, `${parent}uid-of-another`);
});

Deno.test("bindIdentity() makes and deletes no entry when we stop leading while it reads", async () => {
  let fenced = false;
  const { cluster, backend, entry } = setupPodBackend({ fenced: () => fenced });
  const made = await backend.create(SPEC, call);
  cluster.faults.before = (method) => {
    if (method === "getPod") fenced = true;
    return Promise.resolve();
  };
  await rejectsWith("unavailable", backend.bindIdentity(made, SPEC.assignment, call));
  assert.equal(cluster.entries.size, 0);
  assert.ok(!cluster.calls.some(({ method }) => method === "createEntry"));
  fenced = false;
  cluster.faults.before = null;
  await backend.bindIdentity(made, SPEC.assignment, call);
  assert.notEqual(entry(), undefined);
});

Deno.test("list() tells whose entry is gone or another Pod's, and nothing while entries cannot be listed", async () => {
  const { cluster, backend, bound, entry } = setupPodBackend();
  await bound();
  const listed = async () => (await backend.list(call))[0]?.identityBound;
  assert.equal(await listed(), true);
  const before = entry();
  cluster.putEntry({
    name: SPEC.name,
    spec: { ...before?.spec, selectors: ["k8s:pod-uid:other"] },
  });
  assert.equal(await listed(), false);
  cluster.removeEntry(SPEC.name);
  assert.equal(await listed(), false);
  cluster.faults.failing.set("listEntries", new ClusterError("forbidden", "no"));
  assert.equal(await listed(), undefined);
});
