import assert from "node:assert/strict";
import type { Executor } from "../../controller/backend.ts";
import {
  containerStatus,
  type Json,
  podWaitingFor,
  podWith,
  readPod,
  SAMPLE_PREFIX,
} from "../../tests/support/pod_samples.ts";

Deno.test("executorOf() shows name, uid, node, times and our own metadata", () => {
  const executor = readPod(podWith({
    phase: "Running",
    containerStatuses: [containerStatus({ running: { startedAt: "2026-11-30T01:00:02Z" } })],
  }));
  assert.deepEqual(executor, {
    name: "ci-0011223344-1",
    uid: "3c1f9a52-91c0-4a0f-8b4e-0d7d1a6a3c11",
    phase: "Running",
    metadata: {
      labels: { [`${SAMPLE_PREFIX}/runner`]: "true" },
      annotations: { [`${SAMPLE_PREFIX}/job-key`]: "build" },
    },
    createdAt: Date.UTC(2026, 10, 30, 1),
    identityTarget: "3c1f9a52-91c0-4a0f-8b4e-0d7d1a6a3c11",
    terminating: false,
    ended: null,
    terminal: false,
    node: "node-1",
    waiting: null,
  });
});

const waits: readonly {
  readonly what: string;
  readonly pod: Json;
  readonly waiting: Executor["waiting"];
}[] = [
  {
    what: "a Pod that nobody has looked at",
    pod: podWith({ phase: "Pending" }, { spec: { nodeName: undefined } }),
    waiting: { code: "executor_starting", detail: "waits for a node" },
  },
  {
    what: "a Pod that fits on no node",
    pod: podWith({
      phase: "Pending",
      conditions: [{
        type: "PodScheduled",
        status: "False",
        reason: "Unschedulable",
        message:
          "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available.",
      }],
    }, { spec: { nodeName: undefined } }),
    waiting: {
      code: "unschedulable",
      detail: "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available.",
    },
  },
  {
    what: "a Pod behind a scheduling gate",
    pod: podWith({
      phase: "Pending",
      conditions: [{
        type: "PodScheduled",
        status: "False",
        reason: "SchedulingGated",
        message: "Scheduling is blocked due to non-empty scheduling gates",
      }],
    }, { spec: { nodeName: undefined } }),
    waiting: {
      code: "unschedulable",
      detail: "Scheduling is blocked due to non-empty scheduling gates",
    },
  },
  {
    what: "a node that has not begun",
    pod: podWith({ phase: "Pending", conditions: [{ type: "PodScheduled", status: "True" }] }),
    waiting: { code: "executor_starting", detail: 'node "node-1" has not started it yet' },
  },
  {
    what: "a container in the making",
    pod: podWaitingFor("ContainerCreating"),
    waiting: { code: "executor_starting", detail: "ContainerCreating" },
  },
  {
    what: "an image that cannot be pulled",
    pod: podWaitingFor(
      "ErrImagePull",
      'failed to pull and unpack image "x/y:1": failed to resolve reference:\nnot found',
    ),
    waiting: {
      code: "image_pull",
      detail:
        'ErrImagePull: failed to pull and unpack image "x/y:1": failed to resolve reference: not found',
    },
  },
  {
    what: "a pull that backs off",
    pod: podWaitingFor("ImagePullBackOff", 'Back-off pulling image "x/y:1"'),
    waiting: { code: "image_pull", detail: 'ImagePullBackOff: Back-off pulling image "x/y:1"' },
  },
  {
    what: "a volume of the template that is not there",
    pod: podWaitingFor("CreateContainerConfigError", 'configmap "settings" not found'),
    waiting: {
      code: "executor_failed",
      detail: 'CreateContainerConfigError: configmap "settings" not found',
    },
  },
  {
    what: "an image of an init container",
    pod: podWith({
      phase: "Pending",
      initContainerStatuses: [
        containerStatus(
          { waiting: { reason: "ImagePullBackOff", message: "Back-off" } },
          "prepare",
        ),
      ],
      containerStatuses: [containerStatus({ waiting: { reason: "PodInitializing" } })],
    }),
    waiting: {
      code: "image_pull",
      detail: 'init container "prepare": ImagePullBackOff: Back-off',
    },
  },
  {
    what: "an init container that runs",
    pod: podWith({
      phase: "Pending",
      initContainerStatuses: [containerStatus({ running: {} }, "prepare")],
      containerStatuses: [containerStatus({ waiting: { reason: "PodInitializing" } })],
    }),
    waiting: { code: "executor_starting", detail: 'init container "prepare" runs' },
  },
];
for (const { what, pod, waiting } of waits) {
  Deno.test(`executorOf() says what ${what} waits for`, () => {
    const executor = readPod(pod);
    assert.deepEqual(executor.waiting, waiting);
    assert.equal(executor.ended, null);
  });
}

Deno.test("executorOf() takes a start that Kubernetes goes on trying for an end once it is stuck", () => {
  for (const reason of ["ErrImagePull", "ImagePullBackOff", "CreateContainerConfigError"]) {
    const pod = podWaitingFor(reason, "no");
    assert.equal(readPod(pod).ended, null);
    const { ended, waiting } = readPod(pod, { stuck: true });
    assert.equal(ended?.detail, `${reason}: no`);
    assert.equal(waiting, null);
  }
  assert.equal(readPod(podWaitingFor("ContainerCreating"), { stuck: true }).ended, null);
});

Deno.test("executorOf() takes an image that can never be pulled for an end at once", () => {
  for (const reason of ["InvalidImageName", "ErrImageNeverPull"]) {
    const { ended } = readPod(podWaitingFor(reason, "no"));
    assert.deepEqual(ended, {
      code: "image_pull",
      detail: `${reason}: no`,
      exitCode: null,
      lastLines: [],
    });
  }
});

Deno.test("executorOf() tells the cluster's last warning where the status says nothing", () => {
  const warning = 'FailedMount: MountVolume.SetUp failed for volume "spiffe-workload-api"';
  const creating = readPod(podWaitingFor("ContainerCreating"), { warning });
  assert.deepEqual(creating.waiting, { code: "executor_starting", detail: warning });
  assert.match(
    readPod(podWaitingFor("ErrImagePull", "no"), { warning }).waiting?.detail ?? "",
    /^ErrImage/,
  );
});

Deno.test("executorOf() tells why a Pod is being deleted, where the cluster says", () => {
  const metadata = { name: "x", uid: "u", deletionTimestamp: "2026-11-30T01:02:00Z" };
  const conditions = [{
    type: "DisruptionTarget",
    status: "True",
    reason: "EvictionByEvictionAPI",
    message: "Eviction API: evicting",
  }];
  const status = { phase: "Running", containerStatuses: [containerStatus({ running: {} })] };
  const evicted = readPod(podWith({ ...status, conditions }, { metadata }));
  assert.equal(evicted.deletion, "EvictionByEvictionAPI: Eviction API: evicting");
  assert.equal(readPod(podWith(status, { metadata })).deletion, undefined);
  assert.equal(readPod(podWith({ ...status, conditions })).deletion, undefined);
});

Deno.test("executorOf() shows a Pod that is being deleted as terminating, and alive", () => {
  const metadata = {
    name: "x",
    uid: "u",
    deletionTimestamp: "2026-11-30T01:02:00Z",
    deletionGracePeriodSeconds: 120,
  };
  const pod = podWith(
    { phase: "Running", containerStatuses: [containerStatus({ running: {} })] },
    { metadata },
  );
  const executor = readPod(pod);
  assert.equal(executor.terminating, true);
  assert.equal(executor.phase, "Terminating");
  assert.equal(executor.ended, null);
  assert.deepEqual(readPod(pod, { overdue: true }).ended, {
    code: "executor_lost",
    detail: 'node "node-1" has not ended it since its deletion: the node is lost',
    exitCode: null,
    lastLines: [],
  });
});

Deno.test("executorOf() has no identity target before the node, where the parent depends on it", () => {
  const unplaced = podWith({ phase: "Pending" }, { spec: { nodeName: undefined } });
  assert.equal(readPod(unplaced, { needsNode: true }).identityTarget, null);
  assert.notEqual(readPod(unplaced).identityTarget, null);
  assert.notEqual(readPod(podWith({ phase: "Pending" }), { needsNode: true }).identityTarget, null);
});

Deno.test("executorOf() sees the terminal marker under our prefix only", () => {
  const labelled = (labels: Json) => podWith({}, { metadata: { name: "x", uid: "u", labels } });
  assert.equal(readPod(labelled({ [`${SAMPLE_PREFIX}/terminal`]: "true" })).terminal, true);
  assert.equal(readPod(labelled({ "other.example/terminal": "true" })).terminal, false);
});

Deno.test("executorOf() shows objects that make no sense", () => {
  const nonsense: readonly unknown[] = [
    { metadata: { name: "ci-1", uid: "u" } },
    { metadata: { name: "ci-1", uid: "u", labels: [1], annotations: "x" }, spec: 7, status: [] },
    {
      metadata: { name: "ci-1", uid: "u", creationTimestamp: "yesterday", labels: { a: 1 } },
      status: {
        phase: 3,
        conditions: { type: "x" },
        containerStatuses: [null, "x", { name: "executor", state: { terminated: "yes" } }],
      },
    },
  ];
  for (const pod of nonsense) {
    const executor = readPod(pod);
    assert.equal(executor.name, "ci-1");
    assert.equal(executor.uid, "u");
    assert.equal(executor.ended, null);
    assert.deepEqual(executor.metadata, { labels: {}, annotations: {} });
    assert.equal(executor.phase, "Unknown");
  }
});

Deno.test("executorOf() keeps what strangers write on one bounded line", () => {
  const { phase, waiting } = readPod(
    podWaitingFor(`a${"b".repeat(500)}`, `one\ntwo\u0007 ${"x".repeat(9_000)}`),
  );
  assert.ok(phase.length <= 64);
  assert.ok((waiting?.detail.length ?? 0) <= 300);
  assert.doesNotMatch(waiting?.detail ?? "", /\p{Cc}/u);
});
