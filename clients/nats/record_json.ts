import { type ExecutorName, isBackendName } from "../../controller/model/ids.ts";
import type { Claim, StepSnapshot, TaskRecord } from "../../controller/model/record.ts";
import type { Result } from "../../controller/model/reason.ts";
import { isObject } from "../../lib/json_object.ts";
import type { Json } from "./api.ts";

const RESULTS: readonly string[] = ["success", "failure", "cancelled", "skipped"];

/**
 * Reads a record as it was written by this or an earlier release: fields that an earlier one did not
 * have get their empty value. Undefined when it is none.
 */
export function readRecord(json: Json): TaskRecord | undefined {
  const { backend, repository, job } = json;
  if (!isBackendName(backend)) return undefined;
  if (typeof repository !== "string" || typeof job !== "string") return undefined;
  return {
    backend,
    repository,
    job,
    spiffeId: text(json.spiffeId) ?? "",
    // Unknown code counts as code from outside.
    fork: json.fork !== false,
    runId: text(json.runId),
    giteaUrl: text(json.giteaUrl),
    serverUrl: text(json.serverUrl),
    storedAt: number(json.storedAt) ?? 0,
    nonce: text(json.nonce) ?? "",
    uid: text(json.uid),
    claimedBy: claim(json.claimedBy),
    logOffset: number(json.logOffset) ?? 0,
    steps: Array.isArray(json.steps) ? json.steps.map(step) : [],
    failures: number(json.failures) ?? 0,
    parkedUntil: number(json.parkedUntil),
    released: number(json.released),
    terminal: terminal(json.terminal),
    epoch: number(json.epoch) ?? 0,
  };
}

function claim(value: unknown): Claim | null {
  if (!isObject(value)) return null;
  return {
    executor: (text(value.executor) ?? "") as ExecutorName,
    gate: text(value.gate) ?? "",
    at: number(value.at) ?? 0,
  };
}

function step(value: unknown): StepSnapshot {
  const json = isObject(value) ? value : {};
  return {
    id: number(json.id) ?? 0,
    result: result(json.result),
    startedAt: number(json.startedAt) ?? 0,
    stoppedAt: number(json.stoppedAt) ?? 0,
    logIndex: number(json.logIndex) ?? 0,
    logLength: number(json.logLength) ?? 0,
  };
}

function terminal(value: unknown): TaskRecord["terminal"] {
  if (!isObject(value)) return null;
  const ended = result(value.result);
  return ended === null ? null : { result: ended, at: number(value.at) ?? 0 };
}

function result(value: unknown): Result | null {
  return typeof value === "string" && RESULTS.includes(value) ? value as Result : null;
}

function text(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

function number(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}
