import { createHash } from "node:crypto";
import { parse, stringify } from "yaml";
import { isObject, ownProperty } from "../../lib/json_object.ts";

/** Larger texts are refused: a workflow file of one job is a few kilobytes. */
export const MAX_YAML_BYTES = 512 * 1024;
const MAX_ALIASES = 100;
const MAX_LABELS = 64;
const MAX_LABEL_LENGTH = 256;

/** A workflow that cannot be read. The message is meant for the job's author. */
export class WorkflowError extends Error {
  override readonly name = "WorkflowError";
}

/**
 * Reads a YAML document. Throws {@link WorkflowError} on a syntax error, on a text above
 * {@link MAX_YAML_BYTES} and on aliases that multiply without end.
 */
export function parseYaml(text: string): unknown {
  return read(text, true);
}

/** Writes a value as YAML; long lines are not folded. */
export function stringifyYaml(value: unknown): string {
  return stringify(value, { lineWidth: 0 });
}

/**
 * The labels of `jobs.<jobKey>.runs-on` in a task's workflow payload. Gitea has evaluated
 * expressions and matrix already; it writes a string for one label, else a list, and takes the
 * `group` of an object for one more label. Throws {@link WorkflowError} when there are none.
 */
export function runsOn(payload: Uint8Array, jobKey: string): string[] {
  const job = jobOf(payload, jobKey);
  if (job === undefined) {
    throw new WorkflowError(`Cannot read the task's workflow: it has no job ${quote(jobKey)}`);
  }
  const labels = labelsOf(ownProperty(job, "runs-on"), jobKey);
  if (labels.length === 0) throw malformed(jobKey, "names no label");
  return labels;
}

/**
 * `jobs.<jobKey>` of a task's workflow payload; undefined when there is none. Throws
 * {@link WorkflowError} when the payload cannot be read. The caller must not change what it gets.
 */
export function jobOf(payload: Uint8Array, jobKey: string): unknown {
  if (payload.byteLength > MAX_YAML_BYTES) throw tooLarge(payload.byteLength);
  const key = createHash("sha256").update(payload).digest("base64");
  const workflow = recent.get(key) ?? read(new TextDecoder().decode(payload), false);
  if (payload.byteLength <= MAX_REMEMBERED_BYTES) remember(key, workflow);
  return ownProperty(ownProperty(workflow, "jobs"), jobKey);
}

/**
 * The last few payloads as parsed, by their hash. A task's payload is looked at when it is placed,
 * and again, with the same bytes, when its envelope is opened: parsing was a quarter of the hand-over.
 */
const recent = new Map<string, unknown>();
const MAX_REMEMBERED = 64;
const MAX_REMEMBERED_BYTES = 16 * 1024;

function remember(key: string, workflow: unknown): void {
  recent.delete(key);
  recent.set(key, workflow);
  if (recent.size <= MAX_REMEMBERED) return;
  for (const oldest of recent.keys()) {
    recent.delete(oldest);
    return;
  }
}

function read(text: string, uniqueKeys: boolean): unknown {
  if (text.length > MAX_YAML_BYTES) throw tooLarge(text.length);
  try {
    // The check for double keys takes quadratic time; Gitea wrote the payload itself, without any.
    return parse(text, {
      maxAliasCount: MAX_ALIASES,
      merge: true,
      uniqueKeys,
      logLevel: "error",
      prettyErrors: false,
    });
  } catch (cause) {
    // Too deep nesting ends here as well, as a RangeError.
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new WorkflowError(`Cannot read YAML: ${why}`, { cause });
  }
}

function labelsOf(value: unknown, jobKey: string): string[] {
  if (isScalar(value)) return label(value, jobKey);
  if (Array.isArray(value)) {
    if (value.length > MAX_LABELS) throw malformed(jobKey, `has more than ${MAX_LABELS} labels`);
    return value.flatMap((entry: unknown) => label(entry, jobKey));
  }
  if (typeof value === "object" && value !== null) {
    const labels = ownProperty(value, "labels");
    const group = ownProperty(value, "group");
    return [
      ...(labels === undefined || labels === null || isObject(labels)
        ? []
        : labelsOf(labels, jobKey)),
      ...(group === undefined || group === null ? [] : label(group, jobKey)),
    ];
  }
  throw malformed(jobKey, "names no label");
}

function label(value: unknown, jobKey: string): string[] {
  if (!isScalar(value)) throw malformed(jobKey, "has a label that is not a text");
  const text = String(value).trim();
  if (text.length > MAX_LABEL_LENGTH) {
    throw malformed(jobKey, `has a label of more than ${MAX_LABEL_LENGTH} characters`);
  }
  return text === "" ? [] : [text];
}

function isScalar(value: unknown): value is string | number | boolean {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean";
}

function malformed(jobKey: string, what: string): WorkflowError {
  return new WorkflowError(`Cannot read runs-on of job ${quote(jobKey)}: it ${what}`);
}

function tooLarge(size: number): WorkflowError {
  return new WorkflowError(`Cannot read YAML of ${size} bytes: at most ${MAX_YAML_BYTES} are read`);
}

function quote(text: string): string {
  return JSON.stringify(text.slice(0, 100));
}
