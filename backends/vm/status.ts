import type { Ending, Executor } from "../../controller/backend.ts";
import { oneLine } from "../../lib/one_line.ts";
import { exitText } from "../exit_texts.ts";
import type { MetadataCodec } from "./metadata_codec.ts";
import type { Sandbox } from "./sandboxes.ts";

/** The sandbox as the controller sees executors. Never throws. */
export function executorOf(sandbox: Sandbox, codec: MetadataCodec): Executor {
  const { state } = sandbox;
  const annotations = codec.annotationsOf(sandbox);
  const ended = endingOf(sandbox);
  return {
    name: codec.nameOf(sandbox),
    uid: sandbox.id,
    phase: oneLine(state, 64) || "Unknown",
    metadata: {
      labels: codec.labelsOf(sandbox),
      annotations: annotations.kind === "decoded" ? annotations.annotations : {},
    },
    createdAt: sandbox.createdAt,
    identityTarget: STARTING.has(state) ? null : sandbox.id,
    identityBound: codec.isBound(sandbox),
    terminating: state === "Stopping",
    ended,
    terminal: codec.isTerminal(sandbox),
    node: null,
    waiting: ended !== null
      ? null
      : annotations.kind === "unreadable"
      ? { code: "unreadable", detail: annotations.detail }
      : waitingOf(sandbox),
  };
}

/** Reason code of a failure, at the start or later, by the server's words. */
export function failureCode(message: string): "image_pull" | "executor_failed" {
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
  const words = joined(reason, message) || state;
  return {
    code: failureCode(words),
    detail: exitCode === null ? oneLine(words) : exitText(exitCode),
    exitCode,
    lastLines: [],
  };
}

/** What one that has not ended waits for. */
function waitingOf({ state, reason, message }: Sandbox): Executor["waiting"] {
  if (STARTING.has(state)) {
    const detail = oneLine(joined(reason || state, message)) ||
      "the server has not told its state yet";
    return { code: reason === "POOL_CAPACITY_EXHAUSTED" ? "quota" : "executor_starting", detail };
  }
  if (!PAUSED.has(state)) return null;
  const words = oneLine(joined(state, message));
  return { code: "executor_starting", detail: `${words}: resume the sandbox, or release the job` };
}

function joined(...parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join(": ");
}

const STARTING: ReadonlySet<string> = new Set(["", "Pending", "Allocated", "Unknown"]);
/** By somebody else: the controller pauses nothing. */
const PAUSED: ReadonlySet<string> = new Set(["Pausing", "Paused", "Resuming"]);
