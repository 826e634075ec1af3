import assert from "node:assert/strict";
import type { Ending, Executor } from "../../controller/backend.ts";
import { podOf } from "./pod.ts";
import { executorOf, type Reading } from "./status.ts";

type Json = Readonly<Record<string, unknown>>;

const PREFIX = "ci.example.org";
const READING: Reading = {
  prefix: PREFIX,
  needsNode: false,
  warning: null,
  stuck: false,
  overdue: false,
};

/** A Pod as an API server gives it, on a node unless told otherwise. */
function podWith(
  status: Json,
  parts: { readonly spec?: Json; readonly metadata?: Json } = {},
): Json {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: "ci-0011223344-1",
      namespace: "gitea-actions",
      uid: "3c1f9a52-91c0-4a0f-8b4e-0d7d1a6a3c11",
      creationTimestamp: "2026-11-30T01:00:00Z",
      labels: { [`${PREFIX}/runner`]: "true", "app.kubernetes.io/name": "other" },
      annotations: { [`${PREFIX}/job-key`]: "build", "cni.example/ip": "10.0.0.7" },
      ...parts.metadata,
    },
    spec: { nodeName: "node-1", containers: [{ name: "executor" }], ...parts.spec },
    status: { qosClass: "Burstable", ...status },
  };
}

const container = (state: Json, name = "executor"): Json => ({
  name,
  image: "registry.example.org/executor:1",
  imageID: "",
  ready: false,
  restartCount: 0,
  state,
});
const waitingFor = (reason: string, message?: string): Json =>
  podWith({
    phase: "Pending",
    conditions: [{ type: "PodScheduled", status: "True" }],
    containerStatuses: [
      container({ waiting: { reason, ...(message === undefined ? {} : { message }) } }),
    ],
  });
const terminated = (state: Json, pod: Json = {}): Json =>
  podWith({
    phase: state.exitCode === 0 ? "Succeeded" : "Failed",
    containerStatuses: [
      container({
        terminated: {
          startedAt: "2026-11-30T01:00:02Z",
          finishedAt: "2026-11-30T01:00:09Z",
          containerID: "containerd://0123",
          ...state,
        },
      }),
    ],
    ...pod,
  });

const read = (pod: unknown, reading: Partial<Reading> = {}): Executor =>
  executorOf(podOf(pod), { ...READING, ...reading });

Deno.test("executorOf() shows name, uid, node, times and our own metadata", () => {
  const executor = read(podWith({
    phase: "Running",
    containerStatuses: [container({ running: { startedAt: "2026-11-30T01:00:02Z" } })],
  }));
  assert.deepEqual(executor, {
    name: "ci-0011223344-1",
    uid: "3c1f9a52-91c0-4a0f-8b4e-0d7d1a6a3c11",
    phase: "Running",
    metadata: {
      labels: { [`${PREFIX}/runner`]: "true" },
      annotations: { [`${PREFIX}/job-key`]: "build" },
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

const endings: readonly { readonly what: string; readonly pod: Json; readonly ending: Ending }[] = [
  {
    what: "a success, although a sidecar runs on",
    pod: podWith({
      phase: "Running",
      containerStatuses: [
        container({ running: { startedAt: "2026-11-30T01:00:02Z" } }, "proxy"),
        container({ terminated: { exitCode: 0, reason: "Completed" } }),
      ],
    }),
    ending: {
      code: "executor_failed",
      detail: "exit code 0: a final state was delivered",
      exitCode: 0,
      lastLines: [],
    },
  },
  {
    what: "an exit code of the gate, with its last lines",
    pod: terminated({
      exitCode: 10,
      reason: "Error",
      message: "one\n\u001b[31mtwo\u001b[0m\r\n\n",
    }),
    ending: {
      code: "executor_failed",
      detail: "exit code 10: no SVID for the job's identity came in time",
      exitCode: 10,
      lastLines: ["one", "two"],
    },
  },
  {
    what: "an executor without memory",
    pod: terminated({ exitCode: 137, reason: "OOMKilled" }),
    ending: {
      code: "executor_failed",
      detail: "OOMKilled: a process used more memory than the container's limit allows",
      exitCode: 137,
      lastLines: [],
    },
  },
  {
    what: "a program that cannot be started",
    pod: terminated({
      exitCode: 128,
      reason: "StartError",
      message: 'failed to create containerd task: exec: "/no": stat /no: no such file or directory',
      startedAt: "1970-01-01T00:00:00Z",
    }),
    ending: {
      code: "executor_failed",
      detail:
        'StartError: failed to create containerd task: exec: "/no": stat /no: no such file or directory',
      exitCode: 128,
      lastLines: [],
    },
  },
  {
    what: "an eviction without a word of the container",
    pod: podWith({
      phase: "Failed",
      reason: "Evicted",
      message: "The node was low on resource: memory. Threshold quantity: 100Mi, available: 80Mi. ",
    }),
    ending: {
      code: "executor_lost",
      detail:
        "Evicted: The node was low on resource: memory. Threshold quantity: 100Mi, available: 80Mi.",
      exitCode: null,
      lastLines: [],
    },
  },
  {
    what: "an eviction that killed the container",
    pod: terminated({ exitCode: 137, reason: "Error", message: "last words" }, {
      reason: "Evicted",
      message: 'Usage of EmptyDir volume "work" exceeds the limit "20Gi".',
      conditions: [{
        type: "DisruptionTarget",
        status: "True",
        reason: "TerminationByKubelet",
        message: 'Usage of EmptyDir volume "work" exceeds the limit "20Gi".',
      }],
    }),
    ending: {
      code: "executor_lost",
      detail:
        'Evicted: Usage of EmptyDir volume "work" exceeds the limit "20Gi". (killed by SIGKILL)',
      exitCode: 137,
      lastLines: ["last words"],
    },
  },
  {
    what: "a node that is shut down",
    pod: terminated({ exitCode: 143, reason: "Error" }, {
      reason: "Terminated",
      message: "Pod was terminated in response to imminent node shutdown.",
    }),
    ending: {
      code: "executor_lost",
      detail:
        "Terminated: Pod was terminated in response to imminent node shutdown. (killed by SIGTERM)",
      exitCode: 143,
      lastLines: [],
    },
  },
  {
    what: "a preemption that the container was told of",
    pod: terminated({ exitCode: 18, reason: "Error" }, {
      conditions: [{
        type: "DisruptionTarget",
        status: "True",
        reason: "PreemptionByScheduler",
        message: "default-scheduler: preempting to accommodate a higher priority pod",
      }],
    }),
    ending: {
      code: "executor_lost",
      detail:
        "PreemptionByScheduler: default-scheduler: preempting to accommodate a higher priority pod " +
        "(exit code 18: stopped before a task was handed over)",
      exitCode: 18,
      lastLines: [],
    },
  },
  {
    what: "a node that is gone, as the Pod collector says it",
    pod: podWith({
      phase: "Failed",
      conditions: [{
        type: "DisruptionTarget",
        status: "True",
        reason: "DeletionByPodGC",
        message: "PodGC: node no longer exists",
      }],
      containerStatuses: [container({ running: { startedAt: "2026-11-30T01:00:02Z" } })],
    }),
    ending: {
      code: "executor_lost",
      detail: "DeletionByPodGC: PodGC: node no longer exists",
      exitCode: null,
      lastLines: [],
    },
  },
  {
    what: "a container that a restarted kubelet knows nothing of",
    pod: terminated({
      exitCode: 137,
      reason: "ContainerStatusUnknown",
      message: "The container could not be located when the pod was terminated",
    }),
    ending: {
      code: "executor_lost",
      detail:
        "ContainerStatusUnknown: The container could not be located when the pod was terminated",
      exitCode: null,
      lastLines: [],
    },
  },
  {
    what: "a Pod that its node refused",
    pod: podWith({
      phase: "Failed",
      reason: "OutOfcpu",
      message: "Pod was rejected: Node didn't have enough resource: cpu, requested: 4000",
    }),
    ending: {
      code: "unschedulable",
      detail: "OutOfcpu: Pod was rejected: Node didn't have enough resource: cpu, requested: 4000",
      exitCode: null,
      lastLines: [],
    },
  },
  {
    what: "a deadline of the template",
    pod: terminated({ exitCode: 143, reason: "Error" }, {
      reason: "DeadlineExceeded",
      message: "Pod was active on the node longer than the specified deadline",
    }),
    ending: {
      code: "executor_failed",
      detail: "DeadlineExceeded: Pod was active on the node longer than the specified deadline " +
        "(killed by SIGTERM)",
      exitCode: 143,
      lastLines: [],
    },
  },
  {
    what: "an init container that fails",
    pod: podWith({
      phase: "Failed",
      initContainerStatuses: [
        container({ terminated: { exitCode: 0, reason: "Completed" } }, "first"),
        container(
          { terminated: { exitCode: 3, reason: "Error", message: "no disk\n" } },
          "prepare",
        ),
      ],
      containerStatuses: [container({ waiting: { reason: "PodInitializing" } })],
    }),
    ending: {
      code: "executor_failed",
      detail: 'init container "prepare": exit code 3',
      exitCode: 3,
      lastLines: ["no disk"],
    },
  },
  {
    what: "a failed Pod that says nothing at all",
    pod: podWith({ phase: "Failed" }),
    ending: {
      code: "executor_failed",
      detail: "the Pod is Failed without its container having run",
      exitCode: null,
      lastLines: [],
    },
  },
];
for (const { what, pod, ending } of endings) {
  Deno.test(`executorOf() reads ${what}`, () => {
    const executor = read(pod);
    assert.deepEqual(executor.ended, ending);
    assert.equal(executor.waiting, null);
  });
}

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
    pod: waitingFor("ContainerCreating"),
    waiting: { code: "executor_starting", detail: "ContainerCreating" },
  },
  {
    what: "an image that cannot be pulled",
    pod: waitingFor(
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
    pod: waitingFor("ImagePullBackOff", 'Back-off pulling image "x/y:1"'),
    waiting: { code: "image_pull", detail: 'ImagePullBackOff: Back-off pulling image "x/y:1"' },
  },
  {
    what: "a volume of the template that is not there",
    pod: waitingFor("CreateContainerConfigError", 'configmap "settings" not found'),
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
        container({ waiting: { reason: "ImagePullBackOff", message: "Back-off" } }, "prepare"),
      ],
      containerStatuses: [container({ waiting: { reason: "PodInitializing" } })],
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
      initContainerStatuses: [container({ running: {} }, "prepare")],
      containerStatuses: [container({ waiting: { reason: "PodInitializing" } })],
    }),
    waiting: { code: "executor_starting", detail: 'init container "prepare" runs' },
  },
];
for (const { what, pod, waiting } of waits) {
  Deno.test(`executorOf() says what ${what} waits for`, () => {
    const executor = read(pod);
    assert.deepEqual(executor.waiting, waiting);
    assert.equal(executor.ended, null);
  });
}

Deno.test("executorOf() takes a start that Kubernetes goes on trying for an end once it is stuck", () => {
  for (const reason of ["ErrImagePull", "ImagePullBackOff", "CreateContainerConfigError"]) {
    const pod = waitingFor(reason, "no");
    assert.equal(read(pod).ended, null);
    const { ended, waiting } = read(pod, { stuck: true });
    assert.equal(ended?.detail, `${reason}: no`);
    assert.equal(waiting, null);
  }
  assert.equal(read(waitingFor("ContainerCreating"), { stuck: true }).ended, null);
});

Deno.test("executorOf() takes an image that can never be pulled for an end at once", () => {
  for (const reason of ["InvalidImageName", "ErrImageNeverPull"]) {
    const { ended } = read(waitingFor(reason, "no"));
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
  const creating = read(waitingFor("ContainerCreating"), { warning });
  assert.deepEqual(creating.waiting, { code: "executor_starting", detail: warning });
  assert.match(
    read(waitingFor("ErrImagePull", "no"), { warning }).waiting?.detail ?? "",
    /^ErrImage/,
  );
});

Deno.test("executorOf() shows a Pod that is being deleted as terminating, and alive", () => {
  const metadata = {
    name: "x",
    uid: "u",
    deletionTimestamp: "2026-11-30T01:02:00Z",
    deletionGracePeriodSeconds: 120,
  };
  const pod = podWith(
    { phase: "Running", containerStatuses: [container({ running: {} })] },
    { metadata },
  );
  const executor = read(pod);
  assert.equal(executor.terminating, true);
  assert.equal(executor.phase, "Terminating");
  assert.equal(executor.ended, null);
  assert.deepEqual(read(pod, { overdue: true }).ended, {
    code: "executor_lost",
    detail: 'node "node-1" has not ended it since its deletion: the node is lost',
    exitCode: null,
    lastLines: [],
  });
});

Deno.test("executorOf() has no identity target before the node, where the parent depends on it", () => {
  const unplaced = podWith({ phase: "Pending" }, { spec: { nodeName: undefined } });
  assert.equal(read(unplaced, { needsNode: true }).identityTarget, null);
  assert.notEqual(read(unplaced).identityTarget, null);
  assert.notEqual(read(podWith({ phase: "Pending" }), { needsNode: true }).identityTarget, null);
});

Deno.test("executorOf() sees the terminal marker under our prefix only", () => {
  const labelled = (labels: Json) => podWith({}, { metadata: { name: "x", uid: "u", labels } });
  assert.equal(read(labelled({ [`${PREFIX}/terminal`]: "true" })).terminal, true);
  assert.equal(read(labelled({ "other.example/terminal": "true" })).terminal, false);
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
    const executor = read(pod);
    assert.equal(executor.name, "ci-1");
    assert.equal(executor.uid, "u");
    assert.equal(executor.ended, null);
    assert.deepEqual(executor.metadata, { labels: {}, annotations: {} });
    assert.equal(executor.phase, "Unknown");
  }
});

Deno.test("executorOf() keeps what strangers write on one bounded line", () => {
  const { phase, waiting } = read(
    waitingFor(`a${"b".repeat(500)}`, `one\ntwo\u0007 ${"x".repeat(9_000)}`),
  );
  assert.ok(phase.length <= 64);
  assert.ok((waiting?.detail.length ?? 0) <= 300);
  assert.doesNotMatch(waiting?.detail ?? "", /\p{Cc}/u);
});
