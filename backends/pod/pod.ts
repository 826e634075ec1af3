import { isObject, objectOrEmpty } from "../../lib/json_object.ts";

/** What a container does, or why it does not. */
export type ContainerState =
  | { readonly kind: "unknown" }
  | { readonly kind: "waiting"; readonly reason: string; readonly message: string }
  | { readonly kind: "running" }
  | {
    readonly kind: "terminated";
    readonly exitCode: number;
    readonly reason: string;
    /** The container's last words (`terminationMessagePolicy`), or the runtime's when it never ran. */
    readonly message: string;
  };

/** One entry of `containerStatuses` or `initContainerStatuses`. */
export interface ContainerStatus {
  readonly name: string;
  readonly state: ContainerState;
}

/** One entry of `status.conditions`. */
export interface PodCondition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

/** A Pod, as much of it as the backend reads. Missing texts are empty. */
export interface Pod {
  readonly name: string;
  readonly uid: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Milliseconds since the epoch, by the API server's clock; 0 when it cannot be read. */
  readonly createdAt: number;
  /** Null while nobody has deleted it; else how long it was given to end, seconds. */
  readonly deletion: { readonly graceSeconds: number } | null;
  readonly node: string | null;
  /** `Pending`, `Running`, `Succeeded`, `Failed`, `Unknown`; empty before there is a status. */
  readonly phase: string;
  readonly reason: string;
  readonly message: string;
  readonly conditions: readonly PodCondition[];
  readonly containers: readonly ContainerStatus[];
  readonly initContainers: readonly ContainerStatus[];
}

/**
 * Reads a Pod from JSON or from an object of a client library (dates may be `Date`). Never throws: what
 * has another form than expected is left out, because a Pod that cannot be read must be shown all the
 * same.
 */
export function podOf(value: unknown): Pod {
  const pod = objectOrEmpty(value);
  const metadata = objectOrEmpty(pod.metadata);
  const status = objectOrEmpty(pod.status);
  const deleted = metadata.deletionTimestamp !== undefined && metadata.deletionTimestamp !== null;
  return {
    name: text(metadata.name),
    uid: text(metadata.uid),
    labels: texts(metadata.labels),
    annotations: texts(metadata.annotations),
    createdAt: time(metadata.creationTimestamp),
    deletion: deleted ? { graceSeconds: number(metadata.deletionGracePeriodSeconds) } : null,
    node: text(objectOrEmpty(pod.spec).nodeName) || null,
    phase: text(status.phase),
    reason: text(status.reason),
    message: text(status.message),
    conditions: list(status.conditions).map((condition) => ({
      type: text(condition.type),
      status: text(condition.status),
      reason: text(condition.reason),
      message: text(condition.message),
    })),
    containers: list(status.containerStatuses).map(containerStatus),
    initContainers: list(status.initContainerStatuses).map(containerStatus),
  };
}

function containerStatus(status: Readonly<Record<string, unknown>>): ContainerStatus {
  return { name: text(status.name), state: containerState(objectOrEmpty(status.state)) };
}

function containerState(state: Readonly<Record<string, unknown>>): ContainerState {
  const { terminated, waiting } = state;
  if (isObject(terminated)) {
    return {
      kind: "terminated",
      exitCode: number(terminated.exitCode),
      reason: text(terminated.reason),
      message: text(terminated.message),
    };
  }
  if (isObject(state.running)) return { kind: "running" };
  if (isObject(waiting)) {
    return { kind: "waiting", reason: text(waiting.reason), message: text(waiting.message) };
  }
  return { kind: "unknown" };
}

/** The string-valued properties of an object. */
export function texts(value: unknown): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const [key, each] of Object.entries(objectOrEmpty(value))) {
    if (typeof each === "string") found[key] = each;
  }
  return found;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function number(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}

function list(value: unknown): Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

function time(value: unknown): number {
  if (value instanceof Date) return value.getTime() || 0;
  return typeof value === "string" ? Date.parse(value) || 0 : 0;
}
