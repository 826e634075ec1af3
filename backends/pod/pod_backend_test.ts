import assert from "node:assert/strict";
import { BackendError, type Executor, type ExecutorChange } from "../../controller/backend.ts";
import type { Instance } from "../../controller/model/ids.ts";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { objectOrEmpty } from "../../lib/json_object.ts";
import { silentLogger } from "../../lib/logger.ts";
import { specOf } from "../../tests/contract/backend_suite.ts";
import { createFakeCluster } from "../../tests/fakes/cluster.ts";
import { eventually } from "../../tests/support/eventually.ts";
import { ClusterError } from "./cluster.ts";
import { createPodBackend } from "./pod_backend.ts";
import { podOf } from "./pod.ts";
import { NO_TEMPLATE, type PodTemplate } from "./template.ts";

const PREFIX = "ci.example.org";
const INSTANCE = "0011223344" as Instance;
const call = { signal: new AbortController().signal };
const SPEC = specOf("1", "pod");

function setup(
  options: {
    readonly agentId?: string;
    readonly template?: PodTemplate;
    readonly fenced?: () => boolean;
  } = {},
) {
  const clock = createFakeClock();
  const cluster = createFakeCluster({ clock });
  const said: { message: string; fields: unknown }[] = [];
  const say = (message: string, fields: unknown) => void said.push({ message, fields });
  const logger = { ...silentLogger, info: say, warn: say, child: () => logger };
  const backend = createPodBackend({
    cluster,
    pods: {
      image: "registry.example.org/executor:1",
      serviceAccount: "gitea-task-executor",
      userId: 2000,
      template: options.template ?? NO_TEMPLATE,
      spiffeVolume: { kind: "csi" },
      endpointSocket: "unix:///run/spire/agent.sock",
    },
    identity: {
      instance: INSTANCE,
      prefix: PREFIX,
      className: "test",
      agentId: options.agentId ?? "spiffe://example.org/node/test",
    },
    clock,
    logger,
    guard() {
      if (options.fenced?.()) throw new Error("not the leader");
    },
  });
  return {
    clock,
    cluster,
    backend,
    said,
    messages: () => said.map(({ message }) => message),
    entry: () => cluster.entries.get(SPEC.name),
    async bound(): Promise<Executor> {
      const made = await backend.create(SPEC, call);
      await backend.bindIdentity(made, SPEC.assignment, call);
      return made;
    },
  };
}

async function rejectsWith(code: string, attempt: Promise<unknown>): Promise<void> {
  await assert.rejects(attempt, (error) => {
    assert.ok(error instanceof BackendError, String(error));
    assert.equal(error.code, code);
    return true;
  });
}

Deno.test("bindIdentity() makes one entry, labelled as our instance's", async () => {
  const { cluster, bound, entry } = setup();
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
  const { cluster, backend, bound, entry } = setup();
  const made = await bound();
  const before = entry();
  assert.ok(before?.spec.selectors !== undefined);
  const selectors = before.spec.selectors.toReversed();
  cluster.putEntry({ ...before, spec: { ...before.spec, selectors } });
  await backend.bindIdentity(made, SPEC.assignment, call);
  assert.equal(entry()?.uid, before.uid);
});

Deno.test("bindIdentity() makes an entry again that somebody has deleted", async () => {
  const { cluster, backend, bound, entry } = setup();
  const made = await bound();
  const before = entry();
  assert.ok(before !== undefined);
  await cluster.deleteEntry(before, call);
  await backend.bindIdentity(made, SPEC.assignment, call);
  assert.deepEqual(entry()?.spec, before.spec);
});

Deno.test("bindIdentity() replaces the entry of an earlier Pod of that name", async () => {
  const { cluster, backend, bound, entry } = setup();
  await bound();
  const old = entry()?.uid;
  cluster.remove(SPEC.name);
  const next = await backend.create(SPEC, call);
  await backend.bindIdentity(next, SPEC.assignment, call);
  assert.notEqual(entry()?.uid, old);
  assert.ok(entry()?.spec.selectors?.includes(`k8s:pod-uid:${next.uid}`));
});

Deno.test("bindIdentity() is a conflict when somebody else has an entry of that name", async () => {
  const { cluster, backend, entry } = setup();
  cluster.putEntry({ name: SPEC.name, labels: { [`${PREFIX}/instance`]: "ffffffffff" } });
  const before = entry();
  const made = await backend.create(SPEC, call);
  await rejectsWith("conflict", backend.bindIdentity(made, SPEC.assignment, call));
  await backend.delete(made, call);
  assert.deepEqual(entry(), before);
});

Deno.test("bindIdentity() gives up for now when the entry is made and deleted all the time", async () => {
  const { cluster, backend } = setup();
  const made = await backend.create(SPEC, call);
  cluster.faults.failing.set("createEntry", new ClusterError("already_exists", "it is there"));
  await rejectsWith("unavailable", backend.bindIdentity(made, SPEC.assignment, call));
});

Deno.test("bindIdentity() names the node in the parent, asked each time", async () => {
  const agentId = "spiffe://example.org/spire/agent/k8s_psat/test/{nodeUID}";
  const { cluster, backend, entry } = setup({ agentId });
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

Deno.test("list() deletes our entries whose Pods are gone, and nobody else's", async () => {
  const { cluster, backend, bound, messages } = setup();
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

Deno.test("list() keeps the entry of a Pod that has lost our label", async () => {
  const { cluster, backend, bound } = setup();
  await bound();
  cluster.edit(SPEC.name, (pod) => ({
    ...pod,
    metadata: { ...objectOrEmpty(pod.metadata), labels: {} },
  }));
  assert.deepEqual(await backend.list(call), []);
  assert.equal(cluster.entries.size, 1);
});

Deno.test("list() keeps the entry of a Pod that is made and bound while it lists", async () => {
  const { cluster, backend } = setup();
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
  const { cluster, backend, bound, messages } = setup({ fenced: () => fenced });
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

Deno.test("bindIdentity() makes and deletes no entry when we stop leading while it reads", async () => {
  let fenced = false;
  const { cluster, backend, entry } = setup({ fenced: () => fenced });
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

Deno.test("delete() does nothing more when we stop leading after its first effect", async () => {
  let fenced = false;
  const { cluster, backend, clock, bound } = setup({ fenced: () => fenced });
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
  const { cluster, backend, messages } = setup();
  await backend.create(SPEC, call);
  cluster.faults.failing.set("listEntries", new ClusterError("not_found", "no such resource"));
  assert.equal((await backend.list(call)).length, 1);
  assert.ok(messages().includes("identity entries cannot be listed"));
});

Deno.test("list() says once that an entry is masked, or that nobody renders it", async () => {
  const { cluster, backend, clock, bound, entry, said } = setup();
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
  const { cluster, backend, clock } = setup();
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
  const { cluster, backend, clock } = setup();
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
  const { cluster, backend, clock } = setup();
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
  const { cluster, backend, bound } = setup();
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
  const { cluster, backend, clock, bound, messages } = setup();
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
  const { cluster, backend, clock, bound } = setup();
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
  const { cluster, backend, bound } = setup();
  const made = await bound();
  cluster.remove(made.name);
  await backend.delete(made, call);
  assert.equal(cluster.entries.size, 0);
});

Deno.test("markTerminal() tries again on a conflict about a Pod that is still there", async () => {
  const { cluster, backend, bound } = setup();
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
  const { cluster, backend, bound } = setup();
  const made = await bound();
  cluster.faults.failing.set("deletePod", new ClusterError("conflict", "modified"));
  await rejectsWith("unavailable", backend.delete(made, call));
  assert.equal(cluster.entries.size, 1);
  cluster.remove(made.name);
  await backend.delete(made, call);
  assert.equal(cluster.entries.size, 0);
});

Deno.test("watch() tells what was deleted while nobody was told", async () => {
  const { cluster, backend } = setup();
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
  const { cluster, backend } = setup();
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
  const { cluster, backend } = setup();
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
