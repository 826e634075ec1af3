import type { AssignmentInfo } from "./assignment_info.ts";
import { spiffeIdOf } from "./identity.ts";
import { assignmentIdOf, type Instance, isBackendName, parseTaskId } from "./ids.ts";

/**
 * Labels and annotations of an executor: enough to go on if everything else is lost. Never
 * a secret. The same shape as `Metadata` of the backend port.
 */
export interface ExecutorMetadata {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** What is read back from an executor of ours. */
export type ParsedMetadata =
  | {
    readonly kind: "parsed";
    /** Without run and links: metadata does not hold them. */
    readonly info: AssignmentInfo;
    readonly instance: Instance;
    /** The terminal marker is set. */
    readonly terminal: boolean;
    /** The stated signature; null when there is none. Not verified here. */
    readonly signature: string | null;
  }
  /** `detail` is one of the fixed texts, or says what else does not fit. */
  | { readonly kind: "invalid"; readonly detail: string };

/** Full keys under a prefix such as `ci.ddupan.top`. */
export interface MetadataKeys {
  readonly labels: {
    readonly runner: string;
    readonly assignmentId: string;
    readonly taskId: string;
    readonly backend: string;
    readonly instance: string;
    readonly terminal: string;
  };
  readonly annotations: {
    readonly repository: string;
    readonly jobKey: string;
    readonly spiffeId: string;
    readonly fork: string;
    readonly signature: string;
  };
}

/** All keys under `prefix`. */
export function metadataKeys(prefix: string): MetadataKeys {
  return {
    labels: {
      runner: `${prefix}/runner`,
      assignmentId: `${prefix}/assignment-id`,
      taskId: `${prefix}/task-id`,
      backend: `${prefix}/backend`,
      instance: `${prefix}/instance`,
      terminal: `${prefix}/terminal`,
    },
    annotations: {
      repository: `${prefix}/repository`,
      jobKey: `${prefix}/job-key`,
      spiffeId: `${prefix}/spiffe-id`,
      fork: `${prefix}/fork`,
      signature: `${prefix}/signature`,
    },
  };
}

/** Metadata of a new executor, not signed yet: `signMetadata` makes what {@link withSignature} adds. */
export function buildMetadata(
  info: AssignmentInfo,
  options: { readonly prefix: string; readonly instance: Instance },
): ExecutorMetadata {
  const { labels, annotations } = metadataKeys(options.prefix);
  return {
    labels: {
      [labels.runner]: "true",
      [labels.assignmentId]: info.id,
      [labels.taskId]: info.taskId,
      [labels.backend]: info.backend,
      [labels.instance]: options.instance,
    },
    annotations: {
      [annotations.repository]: info.repository,
      [annotations.jobKey]: info.job,
      [annotations.spiffeId]: info.identity.spiffeId,
      [annotations.fork]: String(info.identity.fork),
    },
  };
}

/** The metadata with its signature. */
export function withSignature(
  metadata: ExecutorMetadata,
  options: { readonly prefix: string; readonly signature: string },
): ExecutorMetadata {
  const key = metadataKeys(options.prefix).annotations.signature;
  return { ...metadata, annotations: { ...metadata.annotations, [key]: options.signature } };
}

/**
 * Rebuilds a minimal assignment. Everything that can be derived is derived again and must agree:
 * the assignment id from the task id, the SPIFFE ID from repository, job key and fork flag.
 */
export function parseMetadata(
  metadata: ExecutorMetadata,
  options: { readonly prefix: string; readonly trustDomain: string },
): ParsedMetadata {
  const keys = metadataKeys(options.prefix);
  const label = (key: keyof MetadataKeys["labels"]) => metadata.labels[keys.labels[key]];
  const annotation = (key: keyof MetadataKeys["annotations"]) =>
    metadata.annotations[keys.annotations[key]];
  const taskId = parseTaskId(label("taskId") ?? "");
  if (taskId === undefined) return invalid("backend metadata has invalid task ID");
  const backend = label("backend");
  if (!isBackendName(backend)) return invalid("backend metadata has invalid backend");
  const id = assignmentIdOf(taskId);
  if (label("assignmentId") !== id) {
    return invalid("backend metadata assignment ID does not match task ID");
  }
  const instance = label("instance");
  if (instance === undefined || instance === "") {
    return invalid("backend metadata has no instance");
  }
  const fork = annotation("fork") ?? "false";
  if (fork !== "true" && fork !== "false") {
    return invalid("backend metadata has invalid fork flag");
  }
  const source = {
    repository: annotation("repository") ?? "",
    job: annotation("jobKey") ?? "",
    fork: fork === "true",
  };
  const derived = spiffeIdOf(source, options.trustDomain);
  if (derived.kind === "permanent") {
    return invalid(`backend metadata has invalid identity: ${derived.detail}`);
  }
  if (annotation("spiffeId") !== derived.identity.spiffeId) {
    return invalid("backend metadata SPIFFE ID does not match repository and job");
  }
  return {
    kind: "parsed",
    info: {
      id,
      taskId,
      backend,
      identity: derived.identity,
      repository: source.repository,
      job: source.job,
      runId: null,
      giteaUrl: null,
      serverUrl: null,
    },
    // Whose instance it is decides the caller, by comparing.
    instance: instance as Instance,
    terminal: label("terminal") === "true",
    signature: annotation("signature") ?? null,
  };
}

function invalid(detail: string): ParsedMetadata {
  return { kind: "invalid", detail };
}
