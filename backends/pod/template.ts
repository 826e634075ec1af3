import { isObject, objectOrEmpty, ownProperty } from "../../lib/json_object.ts";
import { parseYaml } from "../../controller/model/workflow.ts";
import { EXECUTOR_CONTAINER } from "./status.ts";

type Json = Readonly<Record<string, unknown>>;

/** The operator's part of every executor's Pod (`POD_TEMPLATE_FILE`), checked. */
export interface PodTemplate {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** `spec` of a Pod; the container `executor` in it is merged with ours, others are sidecars. */
  readonly spec: Json;
}

/** A template that cannot be used; every fault with its place. */
export class PodTemplateError extends Error {
  override readonly name = "PodTemplateError";

  /** `faults`: each names the field, what it is, and what is allowed. */
  constructor(readonly faults: readonly string[], options: { cause?: unknown } = {}) {
    super(`Read the Pod template: ${faults.join("; ")}`, options);
  }
}

/** No template. */
export const NO_TEMPLATE: PodTemplate = { labels: {}, annotations: {}, spec: {} };

/**
 * Reads a Pod template: a Pod in YAML or JSON, of which `metadata.labels`, `metadata.annotations` and
 * `spec` are used. Fields that belong to this program are allowed and lose, but for those whose loss
 * would surprise; the API server checks the rest. Throws {@link PodTemplateError} with all faults.
 */
export function parsePodTemplate(
  text: string,
  options: { readonly metadataPrefix: string },
): PodTemplate {
  let value: unknown;
  try {
    value = parseYaml(text);
  } catch (cause) {
    throw new PodTemplateError([cause instanceof Error ? cause.message : String(cause)], { cause });
  }
  if (value === null) return NO_TEMPLATE;
  const faults: string[] = [];
  if (!isObject(value)) throw new PodTemplateError(["it is no object; allowed: a Pod"]);
  for (const key of Object.keys(value)) {
    if (!TOP.has(key)) faults.push(`"${key}" is no field of a Pod template`);
  }
  if (value.kind !== undefined && value.kind !== "Pod") {
    faults.push(`kind is ${quote(value.kind)}; allowed: Pod`);
  }
  if (value.apiVersion !== undefined && value.apiVersion !== "v1") {
    faults.push(`apiVersion is ${quote(value.apiVersion)}; allowed: v1`);
  }
  const metadata = objectAt(value.metadata, "metadata", faults);
  for (const key of ["ownerReferences", "finalizers"]) {
    if (metadata[key] !== undefined) {
      faults.push(
        `metadata.${key} would keep others from deleting executors, or let them: unset it`,
      );
    }
  }
  const labels = textsAt(metadata.labels, "metadata.labels", options, faults);
  const annotations = textsAt(metadata.annotations, "metadata.annotations", options, faults);
  const spec = objectAt(value.spec, "spec", faults);
  checkSpec(spec, faults);
  if (faults.length > 0) throw new PodTemplateError(faults);
  return { labels, annotations, spec };
}

/** Objects of a list that are named; checked before by {@link parsePodTemplate}. */
export function namedObjects(value: unknown): readonly (Json & { readonly name: string })[] {
  return (Array.isArray(value) ? value : []).filter((each): each is Json & { name: string } =>
    typeof ownProperty(each, "name") === "string"
  );
}

function checkSpec(spec: Json, faults: string[]): void {
  if (spec.hostUsers === false) {
    faults.push(
      "spec.hostUsers is false; allowed: unset, because the SPIRE agent tells executors by their user id on the host",
    );
  }
  if (spec.ephemeralContainers !== undefined) {
    faults.push("spec.ephemeralContainers cannot be set when a Pod is made: unset it");
  }
  const grace = spec.terminationGracePeriodSeconds;
  if (grace !== undefined && !(Number.isInteger(grace) && between(grace, 30, 86_400))) {
    faults.push(
      `spec.terminationGracePeriodSeconds is ${
        quote(grace)
      }; allowed: whole seconds from 30 to 86400`,
    );
  }
  objectAt(spec.securityContext, "spec.securityContext", faults);
  const names = new Set<string>();
  for (const field of ["containers", "initContainers"]) {
    for (const container of listAt(spec[field], `spec.${field}`, faults)) {
      const { name } = container;
      if (typeof name !== "string") continue;
      if (names.has(name)) faults.push(`spec.${field} has "${name}", a name that is used before`);
      names.add(name);
      if (field === "initContainers" && name === EXECUTOR_CONTAINER) {
        faults.push(`spec.initContainers has "${name}": that is the name of our container`);
      }
      const at = `spec.${field}[${name}]`;
      objectAt(container.securityContext, `${at}.securityContext`, faults);
      listAt(container.env, `${at}.env`, faults);
      checkMounts(container.volumeMounts, `${at}.volumeMounts`, faults);
    }
  }
  const volumes = new Set<unknown>();
  for (const { name } of listAt(spec.volumes, "spec.volumes", faults)) {
    if (volumes.has(name)) faults.push(`spec.volumes has ${quote(name)} twice`);
    volumes.add(name);
  }
}

function checkMounts(value: unknown, at: string, faults: string[]): void {
  for (const mount of listAt(value, at, faults)) {
    if (typeof mount.mountPath !== "string" || !mount.mountPath.startsWith("/")) {
      faults.push(`${at} has a mountPath ${quote(mount.mountPath)}; allowed: an absolute path`);
    }
  }
}

function objectAt(value: unknown, at: string, faults: string[]): Json {
  if (value !== undefined && value !== null && !isObject(value)) {
    faults.push(`${at} is ${quote(value)}; allowed: an object`);
  }
  return objectOrEmpty(value);
}

function listAt(value: unknown, at: string, faults: string[]): readonly Json[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) {
    faults.push(`${at} is ${quote(value)}; allowed: a list`);
    return [];
  }
  if (value.some((each) => typeof ownProperty(each, "name") !== "string")) {
    faults.push(`${at} has an entry without a name`);
  }
  return value.filter(isObject);
}

function textsAt(
  value: unknown,
  at: string,
  { metadataPrefix }: { readonly metadataPrefix: string },
  faults: string[],
): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const [key, text] of Object.entries(objectAt(value, at, faults))) {
    if (key.startsWith(`${metadataPrefix}/`)) {
      faults.push(`${at} has "${key}": keys below "${metadataPrefix}/" are ours`);
    } else if (typeof text !== "string") {
      faults.push(`${at} has "${key}" with ${quote(text)}; allowed: a text (quote it)`);
    } else found[key] = text;
  }
  return found;
}

function between(value: unknown, least: number, most: number): boolean {
  return typeof value === "number" && value >= least && value <= most;
}

function quote(value: unknown): string {
  return (JSON.stringify(value) ?? "missing").slice(0, 80);
}

const TOP = new Set(["apiVersion", "kind", "metadata", "spec", "status"]);
