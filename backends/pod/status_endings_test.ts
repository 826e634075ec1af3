import assert from "node:assert/strict";
import type { Ending } from "../../controller/backend.ts";
import {
  containerStatus,
  type Json,
  podWith,
  readPod,
  terminatedPod,
} from "../../tests/support/pod_samples.ts";

const endings: readonly { readonly what: string; readonly pod: Json; readonly ending: Ending }[] = [
  {
    what: "a success, although a sidecar runs on",
    pod: podWith({
      phase: "Running",
      containerStatuses: [
        containerStatus({ running: { startedAt: "2026-11-30T01:00:02Z" } }, "proxy"),
        containerStatus({ terminated: { exitCode: 0, reason: "Completed" } }),
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
    pod: terminatedPod({
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
    pod: terminatedPod({ exitCode: 137, reason: "OOMKilled" }),
    ending: {
      code: "executor_failed",
      detail: "OOMKilled: a process used more memory than the container's limit allows",
      exitCode: 137,
      lastLines: [],
    },
  },
  {
    what: "a program that cannot be started",
    pod: terminatedPod({
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
    pod: terminatedPod({ exitCode: 137, reason: "Error", message: "last words" }, {
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
    pod: terminatedPod({ exitCode: 143, reason: "Error" }, {
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
    pod: terminatedPod({ exitCode: 18, reason: "Error" }, {
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
      containerStatuses: [containerStatus({ running: { startedAt: "2026-11-30T01:00:02Z" } })],
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
    pod: terminatedPod({
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
    pod: terminatedPod({ exitCode: 143, reason: "Error" }, {
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
        containerStatus({ terminated: { exitCode: 0, reason: "Completed" } }, "first"),
        containerStatus(
          { terminated: { exitCode: 3, reason: "Error", message: "no disk\n" } },
          "prepare",
        ),
      ],
      containerStatuses: [containerStatus({ waiting: { reason: "PodInitializing" } })],
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
    const executor = readPod(pod);
    assert.deepEqual(executor.ended, ending);
    assert.equal(executor.waiting, null);
  });
}
