import { podOf } from "../../backends/pod/pod.ts";
import { executorOf, type Reading } from "../../backends/pod/status.ts";
import type { Executor } from "../../controller/backend.ts";

/** A part of a Kubernetes object. */
export type Json = Readonly<Record<string, unknown>>;

/** `METADATA_PREFIX` of the samples. */
export const SAMPLE_PREFIX = "ci.example.org";

/** A Pod as an API server gives it, on a node unless told otherwise. */
export function podWith(
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
      labels: { [`${SAMPLE_PREFIX}/runner`]: "true", "app.kubernetes.io/name": "other" },
      annotations: { [`${SAMPLE_PREFIX}/job-key`]: "build", "cni.example/ip": "10.0.0.7" },
      ...parts.metadata,
    },
    spec: { nodeName: "node-1", containers: [{ name: "executor" }], ...parts.spec },
    status: { qosClass: "Burstable", ...status },
  };
}

/** An entry of `containerStatuses`. */
export function containerStatus(state: Json, name = "executor"): Json {
  return {
    name,
    image: "registry.example.org/executor:1",
    imageID: "",
    ready: false,
    restartCount: 0,
    state,
  };
}

/** A Pod on a node whose executor waits. */
export function podWaitingFor(reason: string, message?: string): Json {
  const waiting = { reason, ...(message === undefined ? {} : { message }) };
  return podWith({
    phase: "Pending",
    conditions: [{ type: "PodScheduled", status: "True" }],
    containerStatuses: [containerStatus({ waiting })],
  });
}

/** A Pod whose executor has terminated; `status` as further fields. */
export function terminatedPod(state: Json, status: Json = {}): Json {
  const terminated = {
    startedAt: "2026-11-30T01:00:02Z",
    finishedAt: "2026-11-30T01:00:09Z",
    containerID: "containerd://0123",
    ...state,
  };
  return podWith({
    phase: state.exitCode === 0 ? "Succeeded" : "Failed",
    containerStatuses: [containerStatus({ terminated })],
    ...status,
  });
}

/** What the backend makes of a Pod. */
export function readPod(pod: unknown, reading: Partial<Reading> = {}): Executor {
  return executorOf(podOf(pod), {
    prefix: SAMPLE_PREFIX,
    needsNode: false,
    warning: null,
    stuck: false,
    overdue: false,
    ...reading,
  });
}
