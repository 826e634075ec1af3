import assert from "node:assert/strict";
import { BackendError, type ExecutorChange } from "../../controller/backend.ts";
import { objectOrEmpty } from "../../lib/json_object.ts";
import { specOf } from "../../tests/contract/backend_suite.ts";
import { eventually } from "../../tests/support/eventually.ts";
import { ClusterError } from "./cluster.ts";
import { podOf } from "./pod.ts";
import { call } from "../../tests/support/calls.ts";
import { INSTANCE, PREFIX, setupPodBackend, SPEC } from "../../tests/support/pod_backend_setup.ts";
import { rejectsWith } from "../../tests/support/rejections.ts";

Deno.test("list() deletes our entries whose Pods are gone, and nobody else's", async () => {
  const { cluster, backend, bound, messages } = setupPodBackend();
  await bound();
  const selectors = ["k8s:pod-uid:gone", "unix:uid:2000"];
  const ours = { [`${PREFIX}/instance`]: INSTANCE };
  cluster.putEntry({ name: "left", labels: ours, spec: { selectors } });
  cluster.putEntry({ name: "odd", labels: ours, spec: {} });
  const theirs = { [`${PREFIX}/instance`]: "ffffffffff" };
  cluster.putEntry({ name: "foreign", labels: theirs, spec: { selectors } });
  cluster.putEntry({ name: "plain", spec: { selectors } });
  await backend.list(call);
  assert.deepEqual([...cluster.entries.keys()].sort(), ["foreign", "plain", SPEC.name].sort());
  const deleted = "identity entry without executor deleted";
  assert.deepEqual(messages().filter((message) => message === deleted).length, 2);
});

Deno.test("others() names Pods without our label, and none of an instance", async () => {
  const { cluster, backend } = setupPodBackend();
  await backend.create(SPEC, call);
  assert.deepEqual(await backend.others?.(call), []);
  const labels = { app: "web", [`${PREFIX}/runner`]: "false" };
  cluster.put({ metadata: { name: "web-0", labels }, spec: { containers: [] } });
  assert.deepEqual(await backend.others?.(call), ["web-0"]);
  cluster.faults.failing.set("listPods", new ClusterError("unknown_outcome", "away"));
  await assert.rejects(async () => await backend.others?.(call), BackendError);
});

Deno.test("list() keeps the entry of a Pod that has lost our label", async () => {
  const { cluster, backend, bound } = setupPodBackend();
  await bound();
  cluster.edit(SPEC.name, (pod) => ({
    ...pod,
    metadata: { ...objectOrEmpty(pod.metadata), labels: {} },
  }));
  assert.deepEqual(await backend.list(call), []);
  assert.equal(cluster.entries.size, 1);
});

Deno.test("list() keeps the entry of a Pod that is made and bound while it lists", async () => {
  const { cluster, backend } = setupPodBackend();
  cluster.faults.before = async (method) => {
    if (method !== "listPods") return;
    cluster.faults.before = null;
    const made = await backend.create(SPEC, call);
    await backend.bindIdentity(made, SPEC.assignment, call);
    cluster.remove(SPEC.name); // Also one that has gone since: its turn is the next list's.
  };
  await backend.list(call);
  assert.equal(cluster.entries.size, 1);
  await backend.list(call);
  assert.equal(cluster.entries.size, 0);
});

Deno.test("list() deletes nothing when the list of Pods fails, or we may not act", async () => {
  let fenced = false;
  const { cluster, backend, bound, messages } = setupPodBackend({ fenced: () => fenced });
  await bound();
  cluster.remove(SPEC.name);
  cluster.faults.failing.set("listPods", new ClusterError("unknown_outcome", "away"));
  await rejectsWith("unknown_outcome", backend.list(call));
  assert.equal(cluster.entries.size, 1);
  cluster.faults.failing.clear();
  fenced = true;
  assert.deepEqual(await backend.list(call), []);
  assert.equal(cluster.entries.size, 1);
  assert.ok(messages().includes("identity entries without executor cannot be deleted"));
});

Deno.test("delete() does nothing more when we stop leading after its first effect", async () => {
  let fenced = false;
  const { cluster, backend, clock, bound } = setupPodBackend({ fenced: () => fenced });
  cluster.faults.holdDeletes = true;
  const made = await bound();
  const effects = () =>
    cluster.calls.filter(({ method }) => /^(delete|create)/.test(method)).length;
  const after = (effect: "deletePod" | "getEntry") => {
    cluster.faults.before = (method) => {
      if (method === effect) fenced = true;
      return Promise.resolve();
    };
  };
  after("getEntry");
  const before = effects();
  await rejectsWith("unavailable", backend.delete(made, call));
  assert.equal(effects(), before + 1, "the Pod's deletion, not the entry's");
  assert.equal(cluster.entries.size, 1);

  fenced = false;
  await clock.advance(180_000);
  after("deletePod");
  await rejectsWith("unavailable", backend.delete(made, call));
  assert.equal(effects(), before + 2, "not the deletion without grace");
  assert.ok(cluster.pods.has(made.name));
});

Deno.test("list() shows the Pods although entries cannot be listed", async () => {
  const { cluster, backend, messages } = setupPodBackend();
  await backend.create(SPEC, call);
  cluster.faults.failing.set("listEntries", new ClusterError("not_found", "no such resource"));
  assert.equal((await backend.list(call)).length, 1);
  assert.ok(messages().includes("identity entries cannot be listed"));
});

Deno.test("list() says once that an entry is masked, or that nobody renders it", async () => {
  const { cluster, backend, clock, bound, entry, said } = setupPodBackend();
  await bound();
  const before = entry();
  assert.ok(before !== undefined);
  cluster.putEntry({ ...before, rendered: false });
  await backend.list(call);
  assert.equal(said.length, 0);
  await clock.advance(30_000);
  await backend.list(call);
  await backend.list(call);
  assert.deepEqual(said.map(({ message }) => message), ["identity entry is not rendered"]);
  assert.match(JSON.stringify(said[0]?.fields), /class \\"test\\" has taken it/);
  cluster.putEntry({ ...before, uid: "another", masked: true });
  await backend.list(call);
  await backend.list(call);
  assert.equal(said.at(-1)?.message, "identity entry is masked");
  assert.equal(said.length, 2);
});

Deno.test("find() takes an image that cannot be pulled for a failure after a minute, not before", async () => {
  const { cluster, backend, clock } = setupPodBackend();
  cluster.faults.holdStarts = true;
  await backend.create(SPEC, call);
  cluster.schedule(SPEC.name);
  const waiting = (reason: string, message: string) =>
    cluster.status(SPEC.name, {
      containerStatuses: [{ name: "executor", state: { waiting: { reason, message } } }],
    });
  waiting("ErrImagePull", "not found");
  const seen = async () => await backend.find(SPEC.name, call);
  assert.equal((await seen())?.ended, null);
  await clock.advance(40_000);
  waiting("ImagePullBackOff", "back-off");
  assert.equal((await seen())?.ended, null);
  await clock.advance(19_000);
  assert.equal((await seen())?.waiting?.code, "image_pull");
  await clock.advance(1_000);
  assert.deepEqual((await seen())?.ended, {
    code: "image_pull",
    detail: "ImagePullBackOff: back-off",
    exitCode: null,
    lastLines: [],
  });
});

Deno.test("find() begins to count again when a pull goes on", async () => {
  const { cluster, backend, clock } = setupPodBackend();
  cluster.faults.holdStarts = true;
  await backend.create(SPEC, call);
  cluster.schedule(SPEC.name);
  const waiting = async (reason: string) => {
    cluster.status(SPEC.name, {
      containerStatuses: [{ name: "executor", state: { waiting: { reason } } }],
    });
    return (await backend.find(SPEC.name, call))?.ended;
  };
  await waiting("ErrImagePull");
  await clock.advance(50_000);
  assert.equal(await waiting("ContainerCreating"), null);
  await clock.advance(50_000);
  assert.equal(await waiting("ErrImagePull"), null);
});

Deno.test("find() tells the last warning about a Pod that should run by now", async () => {
  const { cluster, backend, clock } = setupPodBackend();
  cluster.faults.holdStarts = true;
  const { uid } = await backend.create(SPEC, call);
  cluster.schedule(SPEC.name);
  cluster.status(SPEC.name, {
    containerStatuses: [{ name: "executor", state: { waiting: { reason: "ContainerCreating" } } }],
  });
  const pod = { name: SPEC.name, uid };
  const warning = { type: "Warning", reason: "FailedMount", message: "no driver" } as const;
  await cluster.emitPodEvent(pod, warning, call);
  await cluster.emitPodEvent(pod, { ...warning, type: "Normal", reason: "Scheduled" }, call);
  const detail = async () => (await backend.find(SPEC.name, call))?.waiting?.detail;
  assert.equal(await detail(), "ContainerCreating");
  await clock.advance(10_000);
  cluster.faults.failing.set("listPodEvents", new ClusterError("forbidden", "no"));
  assert.equal(await detail(), "ContainerCreating");
  cluster.faults.failing.clear();
  assert.equal(await detail(), "ContainerCreating");
  await clock.advance(10_000);
  assert.equal(await detail(), "FailedMount: no driver");
  const asked = cluster.calls.filter(({ method }) => method === "listPodEvents").length;
  assert.equal(await detail(), "FailedMount: no driver");
  const [listed] = await backend.list(call);
  assert.equal(listed?.waiting?.detail, "FailedMount: no driver");
  assert.equal(cluster.calls.filter(({ method }) => method === "listPodEvents").length, asked);
});

Deno.test("delete() asks with the UID and the Pod's own grace period", async () => {
  const { cluster, backend, bound } = setupPodBackend();
  cluster.faults.holdDeletes = true;
  const made = await bound();
  await backend.delete(made, call);
  const left = await backend.find(made.name, call);
  assert.equal(left?.terminating, true);
  assert.equal(left?.ended, null);
  assert.equal(podOf(cluster.pods.get(made.name)).deletion?.graceSeconds, 120);
  assert.equal(cluster.entries.size, 0, "its identity goes at once");
});

Deno.test("delete() removes a Pod whose node has not ended it a minute after its grace period", async () => {
  const { cluster, backend, clock, bound, messages } = setupPodBackend();
  cluster.faults.holdDeletes = true;
  const made = await bound();
  await backend.delete(made, call);
  assert.equal((await backend.find(made.name, call))?.ended, null);
  await clock.advance(179_000);
  await backend.delete(made, call);
  assert.equal((await backend.find(made.name, call))?.ended, null);
  await clock.advance(1_000);
  assert.equal((await backend.find(made.name, call))?.ended?.code, "executor_lost");
  await backend.delete(made, call);
  assert.equal(await backend.find(made.name, call), undefined);
  assert.ok(messages().includes("executor of a lost node is removed"));
});

Deno.test("delete() removes a Pod that has ended on a node that does not say so", async () => {
  const { cluster, backend, clock, bound } = setupPodBackend();
  cluster.faults.holdDeletes = true;
  const made = await bound();
  cluster.terminate(made.name, { exitCode: 3 });
  await backend.delete(made, call);
  await clock.advance(180_000);
  assert.equal((await backend.find(made.name, call))?.ended?.exitCode, 3);
  await backend.delete(made, call);
  assert.equal(await backend.find(made.name, call), undefined);
});

Deno.test("delete() goes on to the identity entry when the Pod is gone already", async () => {
  const { cluster, backend, bound } = setupPodBackend();
  const made = await bound();
  cluster.remove(made.name);
  await backend.delete(made, call);
  assert.equal(cluster.entries.size, 0);
});

Deno.test("markTerminal() tries again on a conflict about a Pod that is still there", async () => {
  const { cluster, backend, bound } = setupPodBackend();
  const made = await bound();
  const busy = new ClusterError("conflict", "the object has been modified");
  cluster.faults.failing.set("labelPod", busy);
  await assert.rejects(backend.markTerminal(made, call), (error) => {
    assert.ok(error instanceof BackendError);
    assert.deepEqual([error.code, error.retryable], ["unavailable", true]);
    return true;
  });
  cluster.faults.failing.set("getPod", new ClusterError("unknown_outcome", "away"));
  await rejectsWith("unknown_outcome", backend.markTerminal(made, call));
  cluster.faults.failing.delete("getPod");
  await backend.markTerminal({ name: made.name, uid: "of an earlier one" }, call);
  cluster.faults.failing.clear();
  await backend.markTerminal(made, call);
  assert.equal((await backend.find(made.name, call))?.terminal, true);
});

Deno.test("delete() does not take a conflict about a Pod that is still there for its end", async () => {
  const { cluster, backend, bound } = setupPodBackend();
  const made = await bound();
  cluster.faults.failing.set("deletePod", new ClusterError("conflict", "modified"));
  await rejectsWith("unavailable", backend.delete(made, call));
  assert.equal(cluster.entries.size, 1);
  cluster.remove(made.name);
  await backend.delete(made, call);
  assert.equal(cluster.entries.size, 0);
});

Deno.test("watch() tells what was deleted while nobody was told", async () => {
  const { cluster, backend } = setupPodBackend();
  await backend.create(SPEC, call);
  const other = await backend.create(specOf("2", "pod"), call);
  const stop = new AbortController();
  const seen: ExecutorChange[] = [];
  const watching = (async () => {
    for await (const change of backend.watch({ signal: stop.signal })) seen.push(change);
  })();
  await eventually(() => seen.length === 2, { what: "both executors" });
  cluster.faults.muteWatch = true;
  cluster.remove(SPEC.name);
  const next = await backend.create(SPEC, call);
  cluster.remove(other.name);
  cluster.faults.muteWatch = false;
  cluster.relist();
  await eventually(() => seen.length === 4, { what: "the changes" });
  assert.deepEqual(seen.slice(2).map(({ name, executor }) => [name, executor?.uid]), [
    [other.name, undefined],
    [SPEC.name, next.uid],
  ]);
  cluster.remove(SPEC.name);
  await eventually(() => seen.length === 5, { what: "the last deletion" });
  assert.equal(seen.at(-1)?.executor, null);
  stop.abort();
  await watching;
});

Deno.test("create() tells quota, refusal and doubt apart", async () => {
  const { cluster, backend } = setupPodBackend();
  const fail = (error: ClusterError) => void cluster.faults.failing.set("createPod", error);
  fail(
    new ClusterError(
      "forbidden",
      "exceeded quota: q, requested: pods=1, used: pods=4, limited: pods=4",
    ),
  );
  await rejectsWith("quota", backend.create(SPEC, call));
  fail(new ClusterError("forbidden", "pods is forbidden: User cannot create resource"));
  await rejectsWith("refused", backend.create(SPEC, call));
  fail(new ClusterError("invalid", "unknown field"));
  await rejectsWith("invalid", backend.create(SPEC, call));
  fail(new ClusterError("unknown_outcome", "no answer"));
  await rejectsWith("unknown_outcome", backend.create(SPEC, call));
});

Deno.test("watch() does not tell of a deletion when a Pod has only lost our label", async () => {
  const { cluster, backend } = setupPodBackend();
  await backend.create(SPEC, call);
  const stop = new AbortController();
  const seen: ExecutorChange[] = [];
  const watching = (async () => {
    for await (const change of backend.watch({ signal: stop.signal })) seen.push(change);
  })();
  await eventually(() => seen.length === 1, { what: "the executor" });
  const strip = (pod: Readonly<Record<string, unknown>>) => ({
    ...pod,
    metadata: { ...objectOrEmpty(pod.metadata), labels: {} },
  });
  cluster.edit(SPEC.name, strip);
  await backend.create(specOf("2", "pod"), call);
  await eventually(() => seen.some(({ name }) => name !== SPEC.name), { what: "another one" });
  assert.deepEqual(seen.filter(({ executor }) => executor === null), []);
  cluster.remove(SPEC.name);
  await eventually(() => seen.at(-1)?.executor === null, { what: "the deletion" });
  stop.abort();
  await watching;
});
