import { type ExecutorName, isBackendName } from "../../controller/model/ids.ts";
import type {
  Claim,
  ReportedEnd,
  StepSnapshot,
  TaskRecord,
} from "../../controller/model/record.ts";
import type { Result } from "../../controller/model/reason.ts";
import { isObject, objectOrEmpty } from "../../lib/json_object.ts";
import { type Json, numberAt, numberOf, textAt, textOf } from "./json.ts";

const RESULTS: readonly string[] = ["success", "failure", "cancelled", "skipped"];

/**
 * Reads a record as it was written by this or an earlier release: fields that an earlier one did not
 * have get their empty value. Undefined when it is none.
 */
export function readRecord(json: Json): TaskRecord | undefined {
  const { backend, repository, job } = json;
  if (!isBackendName(backend)) return undefined;
  if (typeof repository !== "string" || typeof job !== "string") return undefined;
  const end = reported(json.reported);
  return {
    backend,
    repository,
    job,
    ...typeof json.ref === "string" ? { ref: json.ref } : {},
    spiffeId: textAt(json, "spiffeId"),
    // Unknown code counts as code from outside.
    fork: json.fork !== false,
    runId: textOf(json.runId),
    giteaUrl: textOf(json.giteaUrl),
    serverUrl: textOf(json.serverUrl),
    storedAt: numberAt(json, "storedAt"),
    nonce: textAt(json, "nonce"),
    uid: textOf(json.uid),
    claimedBy: claim(json.claimedBy),
    logOffset: numberAt(json, "logOffset"),
    steps: steps(json.steps),
    failures: numberAt(json, "failures"),
    parkedUntil: numberOf(json.parkedUntil),
    released: numberOf(json.released),
    ...end === null ? {} : { reported: end },
    terminal: terminal(json.terminal),
    epoch: numberAt(json, "epoch"),
  };
}

function claim(value: unknown): Claim | null {
  if (!isObject(value)) return null;
  return {
    executor: textAt(value, "executor") as ExecutorName,
    gate: textAt(value, "gate"),
    at: numberAt(value, "at"),
  };
}

function steps(value: unknown): StepSnapshot[] {
  return Array.isArray(value) ? value.map(step) : [];
}

function step(value: unknown): StepSnapshot {
  const json = objectOrEmpty(value);
  return {
    id: numberAt(json, "id"),
    result: result(json.result),
    startedAt: numberAt(json, "startedAt"),
    stoppedAt: numberAt(json, "stoppedAt"),
    logIndex: numberAt(json, "logIndex"),
    logLength: numberAt(json, "logLength"),
  };
}

function reported(value: unknown): ReportedEnd | null {
  if (!isObject(value)) return null;
  const ended = result(value.result);
  if (ended === null) return null;
  return {
    result: ended,
    steps: steps(value.steps),
    row: textOf(value.row),
    at: numberAt(value, "at"),
  };
}

function terminal(value: unknown): TaskRecord["terminal"] {
  if (!isObject(value)) return null;
  const ended = result(value.result);
  return ended === null ? null : { result: ended, at: numberAt(value, "at") };
}

function result(value: unknown): Result | null {
  return typeof value === "string" && RESULTS.includes(value) ? value as Result : null;
}
