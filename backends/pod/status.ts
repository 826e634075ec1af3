import type { Ending, Executor } from "../../controller/backend.ts";
import type { ExecutorName } from "../../controller/model/ids.ts";
import { metadataKeys } from "../../controller/model/metadata.ts";
import type { ReasonCode } from "../../controller/model/reason.ts";
import { oneLine } from "../../lib/one_line.ts";
import { exitText } from "../exit_texts.ts";
import { lastLinesOf } from "../last_lines.ts";
import type { ContainerState, Pod } from "./pod.ts";

/** Name of the container that runs the job; the others are sidecars. */
export const EXECUTOR_CONTAINER = "executor";

/** What {@link executorOf} cannot read from the Pod. */
export interface Reading {
  /** `METADATA_PREFIX`. */
  readonly prefix: string;
  /** The identity's parent depends on the node: there is no target before there is a node. */
  readonly needsNode: boolean;
  /** It has been unable to start for longer than anybody should wait. */
  readonly stuck: boolean;
  /** The last warning of the cluster about its start, where the status says nothing. */
  readonly warning: string | null;
  /** Its grace period ended long ago, and its node has not ended it. */
  readonly overdue: boolean;
}

/** Why an executor does not run yet. */
export interface Waiting {
  readonly code: ReasonCode;
  readonly detail: string;
  /**
   * `never`: it cannot start as it is. `hardly`: Kubernetes goes on trying, seldom with success.
   * `maybe`: nothing is wrong yet.
   */
  readonly hope: "never" | "hardly" | "maybe";
}

/** The Pod as the controller sees executors. */
export function executorOf(pod: Pod, reading: Reading): Executor {
  const { labels } = metadataKeys(reading.prefix);
  const waiting = waitingOf(pod);
  const ended = endingOf(pod) ?? giveUp(pod, waiting, reading);
  const placed = pod.node !== null || !reading.needsNode;
  return {
    // Not checked: a stranger's name is shown as it is.
    name: pod.name as ExecutorName,
    uid: pod.uid,
    phase: oneLine(phaseOf(pod), 64) || "Unknown",
    metadata: {
      labels: underPrefix(pod.labels, reading.prefix),
      annotations: underPrefix(pod.annotations, reading.prefix),
    },
    createdAt: pod.createdAt,
    identityTarget: placed && pod.uid !== "" ? pod.uid : null,
    terminating: pod.deletion !== null,
    ...deletionOf(pod),
    ended,
    terminal: pod.labels[labels.terminal] === "true",
    node: pod.node,
    waiting: ended === null && waiting !== null ? reasonOf(waiting, reading) : null,
  };
}

function reasonOf(waiting: Waiting, { warning }: Reading): Executor["waiting"] {
  const { code, detail, hope } = waiting;
  return { code, detail: warning === null || hope !== "maybe" ? detail : warning };
}

/**
 * How the executor ended; null while it may still run. Its own container decides, whatever sidecars
 * do. A Pod whose phase is final without a word of that container ended, too: the kubelet that evicts
 * or rejects a Pod, and the collector of Pods of lost nodes, write only the phase.
 */
export function endingOf(pod: Pod): Ending | null {
  const state = executorState(pod);
  if (state.kind === "terminated") return endingOfContainer(pod, state);
  if (pod.phase !== "Failed" && pod.phase !== "Succeeded") return null;
  const failedInit = pod.initContainers.find(({ state }) =>
    state.kind === "terminated" && state.exitCode !== 0
  );
  if (pod.reason === "" && failedInit?.state.kind === "terminated") {
    const { exitCode, reason, message } = failedInit.state;
    const why = reasonText(reason, exitCode);
    return {
      code: "executor_failed",
      detail: oneLine(`init container "${failedInit.name}": ${why}`),
      exitCode,
      lastLines: lastLinesOf(message),
    };
  }
  const detail = fateOf(pod) ?? `the Pod is ${pod.phase} without its container having run`;
  return { code: codeOfFate(pod), detail, exitCode: null, lastLines: [] };
}

/** Why the executor does not run yet; null when it runs, has ended, or nobody can tell. */
export function waitingOf(pod: Pod): Waiting | null {
  const state = executorState(pod);
  if (state.kind === "running" || state.kind === "terminated") return null;
  if (pod.phase === "Failed" || pod.phase === "Succeeded") return null;
  if (pod.node === null) return unplaced(pod);
  for (const init of pod.initContainers) {
    const waiting = init.state.kind === "waiting" ? waitingFor(init.state) : undefined;
    if (waiting !== undefined && waiting.hope !== "maybe") {
      return { ...waiting, detail: oneLine(`init container "${init.name}": ${waiting.detail}`) };
    }
  }
  if (state.kind === "waiting") {
    const running = pod.initContainers.find((init) => init.state.kind === "running");
    if (state.reason === "PodInitializing" && running !== undefined) {
      return {
        code: "executor_starting",
        detail: oneLine(`init container "${running.name}" runs`),
        hope: "maybe",
      };
    }
    return waitingFor(state);
  }
  const detail = oneLine(`node "${pod.node}" has not started it yet`);
  return { code: "executor_starting", detail, hope: "maybe" };
}

/** The Pod's condition that says who is disrupting it, in words; undefined when nobody is. */
function disruptionOf(pod: Pod): string | undefined {
  const found = pod.conditions.find(({ type, status }) =>
    type === "DisruptionTarget" && status === "True"
  );
  return found === undefined ? undefined : joined(found.reason, found.message);
}

/** One without such a word was deleted by hand, or by a program that gives no reason. */
function deletionOf(pod: Pod): Pick<Executor, "deletion"> {
  const deletion = pod.deletion === null ? undefined : disruptionOf(pod);
  return deletion === undefined ? {} : { deletion };
}

function executorState(pod: Pod): ContainerState {
  return pod.containers.find(({ name }) => name === EXECUTOR_CONTAINER)?.state ??
    { kind: "unknown" };
}

function endingOfContainer(
  pod: Pod,
  state: Extract<ContainerState, { kind: "terminated" }>,
): Ending {
  const { exitCode, reason, message } = state;
  const lastLines = lastLinesOf(message);
  if (reason === "ContainerStatusUnknown") {
    const detail = fateOf(pod) ?? joined(reason, message);
    return { code: "executor_lost", detail, exitCode: null, lastLines: [] };
  }
  const fate = exitCode === 0 ? undefined : fateOf(pod);
  if (fate !== undefined) {
    const detail = oneLine(`${fate} (${exitText(exitCode)})`, 400);
    return { code: codeOfFate(pod), detail, exitCode, lastLines };
  }
  const neverRan = STARTS_THAT_FAIL.has(reason);
  const detail = neverRan ? joined(reason, message) : reasonText(reason, exitCode);
  return { code: "executor_failed", detail, exitCode, lastLines: neverRan ? [] : lastLines };
}

/** An end that Kubernetes does not call one. */
function giveUp(pod: Pod, waiting: Waiting | null, reading: Reading): Ending | null {
  if (reading.overdue) {
    const where = pod.node === null ? "nobody" : `node "${pod.node}"`;
    const fate = fateOf(pod);
    const detail = `${where} has not ended it since its deletion: the node is lost` +
      (fate === undefined ? "" : ` (${fate})`);
    return { code: "executor_lost", detail: oneLine(detail), exitCode: null, lastLines: [] };
  }
  if (waiting === null || waiting.hope === "maybe") return null;
  if (waiting.hope === "hardly" && !reading.stuck) return null;
  return { code: waiting.code, detail: waiting.detail, exitCode: null, lastLines: [] };
}

/** What happened to the Pod as a whole, in words: `Evicted: The node was low on resource: memory.` */
function fateOf(pod: Pod): string | undefined {
  if (pod.reason !== "") return joined(pod.reason, pod.message);
  const disruption = disruptionOf(pod);
  if (disruption !== undefined) return disruption;
  return pod.message === "" ? undefined : oneLine(pod.message);
}

/** The kubelet's refusals are the scheduler's mistakes; its deadline is the template's; the rest is loss. */
function codeOfFate(pod: Pod): ReasonCode {
  if (/^(OutOf|Node(Affinity|Name|Ports|Selector)|Taint|Admission)/i.test(pod.reason)) {
    return "unschedulable";
  }
  const own = pod.reason === "DeadlineExceeded" || (pod.reason === "" && !disruptionOf(pod));
  return own ? "executor_failed" : "executor_lost";
}

function unplaced(pod: Pod): Waiting {
  const placed = pod.conditions.find(({ type }) => type === "PodScheduled");
  if (placed?.status === "False" && placed.reason !== "") {
    const detail = placed.message === "" ? placed.reason : placed.message;
    return { code: "unschedulable", detail: oneLine(detail), hope: "maybe" };
  }
  return { code: "executor_starting", detail: "waits for a node", hope: "maybe" };
}

function waitingFor(state: Extract<ContainerState, { kind: "waiting" }>): Waiting {
  const { reason, message } = state;
  const hope = HOPELESS.has(reason) ? "never" : "hardly";
  if (IMAGE_REASONS.has(reason)) {
    return { code: "image_pull", detail: joined(reason, message), hope };
  }
  if (UNABLE.has(reason)) return { code: "executor_failed", detail: joined(reason, message), hope };
  const detail = reason === "" ? "its container waits" : joined(reason, message);
  return { code: "executor_starting", detail, hope: "maybe" };
}

/** Like kubectl's STATUS column. */
function phaseOf(pod: Pod): string {
  if (pod.deletion !== null) return "Terminating";
  const state = executorState(pod);
  if (pod.reason !== "") return pod.reason;
  if (state.kind === "waiting" && state.reason !== "") return state.reason;
  if (state.kind === "terminated") return state.reason || "Completed";
  return pod.phase;
}

function reasonText(reason: string, exitCode: number): string {
  const text = exitText(exitCode);
  // "Error" and "Completed" say no more than the code.
  return reason === "" || reason === "Error" || reason === "Completed"
    ? text
    : oneLine(`${reason}: ${EXPLAINED[reason] ?? text}`);
}

function joined(reason: string, message: string): string {
  return oneLine(message === "" ? reason : `${reason}: ${message}`);
}

function underPrefix(
  from: Readonly<Record<string, string>>,
  prefix: string,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(from).filter(([key]) => key.startsWith(`${prefix}/`)),
  );
}

const EXPLAINED: Readonly<Record<string, string>> = {
  OOMKilled: "a process used more memory than the container's limit allows",
};
/** Reasons of the kubelet for containers that wait (its package `images` and `kuberuntime`). */
const IMAGE_REASONS = new Set([
  "ErrImagePull",
  "ImagePullBackOff",
  "InvalidImageName",
  "ErrImageNeverPull",
  "ImageInspectError",
  "RegistryUnavailable",
  "SignatureValidationFailed",
]);
const UNABLE = new Set([
  "CreateContainerConfigError",
  "CreateContainerError",
  "RunContainerError",
  "CrashLoopBackOff",
  "PostStartHookError",
]);
const HOPELESS = new Set(["InvalidImageName", "ErrImageNeverPull"]);
/** Reasons of a container that never ran its program. */
const STARTS_THAT_FAIL = new Set(["StartError", "ContainerCannotRun", "CreateContainerError"]);
