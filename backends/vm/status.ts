import type { Ending, Executor } from "../../controller/backend.ts";
import {
  type AssignmentId,
  type ExecutorName,
  executorName,
  type Instance,
  taskIdOf,
} from "../../controller/model/ids.ts";
import { metadataKeys } from "../../controller/model/metadata.ts";
import { oneLine } from "../../lib/one_line.ts";
import { exitText } from "../exit_texts.ts";
import { decodeAnnotations, isChunkKey } from "./annotations.ts";
import type { Sandbox } from "./sandboxes.ts";

/** Metadata key that says to whoever gives identities that this sandbox may have its own (ADR 0031). */
export function boundKey(prefix: string): string {
  return `${prefix}/identity`;
}

/** Value of {@link boundKey}. */
export const BOUND = "bound";

/**
 * Name of the executor that a sandbox is, from whose it says to be; its id when it does not say, so
 * that it can be shown.
 */
export function nameOf({ id, metadata }: Sandbox, prefix: string): ExecutorName {
  const { labels } = metadataKeys(prefix);
  const instance = metadata[labels.instance] ?? "";
  const assignment = metadata[labels.assignmentId] ?? "";
  return /^[0-9a-z]{1,40}$/.test(instance) && taskIdOf(assignment) !== undefined
    ? executorName(instance as Instance, assignment as AssignmentId)
    : id as ExecutorName;
}

/** What all sandboxes of that name have in their metadata; undefined for one named by its id. */
export function selectorOf(
  name: string,
  prefix: string,
): Readonly<Record<string, string>> | undefined {
  const { labels } = metadataKeys(prefix);
  const [, instance, task] = /^ci-([0-9a-z]{1,40})-([1-9][0-9]{0,18})$/.exec(name) ?? [];
  if (instance === undefined || task === undefined) return undefined;
  return {
    [labels.backend]: "vm",
    [labels.instance]: instance,
    [labels.assignmentId]: `gitea-task-${task}`,
  };
}

/** The sandbox as the controller sees executors. */
export function executorOf(sandbox: Sandbox, prefix: string): Executor {
  const { metadata, state } = sandbox;
  const { labels } = metadataKeys(prefix);
  const decoded = decodeAnnotations(metadata, prefix);
  const ended = endingOf(sandbox);
  const own = Object.entries(metadata).filter(([key]) =>
    key.startsWith(`${prefix}/`) && !isChunkKey(key, prefix) && key !== boundKey(prefix)
  );
  const starting = STARTING.has(state);
  const words = oneLine([state, sandbox.message].filter((part) => part !== "").join(": "));
  return {
    name: nameOf(sandbox, prefix),
    uid: sandbox.id,
    phase: oneLine(state, 64) || "Unknown",
    metadata: {
      labels: Object.fromEntries(own),
      annotations: decoded.kind === "decoded" ? decoded.annotations : {},
    },
    createdAt: sandbox.createdAt,
    identityTarget: starting ? null : sandbox.id,
    identityBound: metadata[boundKey(prefix)] === BOUND,
    terminating: state === "Stopping",
    ended,
    terminal: metadata[labels.terminal] === "true",
    node: null,
    waiting: ended !== null
      ? null
      : decoded.kind === "unreadable"
      ? { code: "unreadable", detail: decoded.detail }
      : starting
      ? waitingOf(sandbox)
      : PAUSED.has(state)
      ? { code: "executor_starting", detail: `${words}: resume the sandbox, or release the job` }
      : null,
  };
}

/** An executor that is not there any more, or never came to be, and whose end must be told. */
export function remains(
  executor: Pick<Executor, "name" | "uid" | "metadata" | "createdAt">,
  ending: Pick<Ending, "code" | "detail"> & { readonly phase: string },
): Executor {
  const { phase, code, detail } = ending;
  return {
    ...executor,
    phase,
    identityTarget: null,
    terminating: false,
    ended: { code, detail, exitCode: null, lastLines: [] },
    terminal: false,
    node: null,
    waiting: null,
  };
}

/** Reason code of a start that failed, by the server's words. */
export function codeOfStart(message: string): "image_pull" | "executor_failed" {
  return /ImagePull|ErrImage|InvalidImageName/.test(message) ? "image_pull" : "executor_failed";
}

/**
 * How it ended; null while it may run. Under Kubernetes a program that ended with 0 stays `Running`, and
 * of any other only that it failed is told (measured on 1.1.1): the gate's own word comes first.
 */
function endingOf({ state, reason, message }: Sandbox): Ending | null {
  if (state !== "Failed" && state !== "Terminated") return null;
  const said = /exited with code (\d{1,3})\b/.exec(message)?.[1];
  const exitCode = said === undefined ? null : Number(said);
  const words = [reason, message].filter((part) => part !== "").join(": ") || state;
  return {
    code: codeOfStart(words),
    detail: exitCode === null ? oneLine(words) : exitText(exitCode),
    exitCode,
    lastLines: [],
  };
}

function waitingOf({ state, reason, message }: Sandbox): Executor["waiting"] {
  const words = [reason || state, message].filter((part) => part !== "").join(": ");
  const detail = oneLine(words) || "the server has not told its state yet";
  return { code: reason === "POOL_CAPACITY_EXHAUSTED" ? "quota" : "executor_starting", detail };
}

const STARTING = new Set(["", "Pending", "Allocated", "Unknown"]);
/** By somebody else: the controller pauses nothing. */
const PAUSED = new Set(["Pausing", "Paused", "Resuming"]);
