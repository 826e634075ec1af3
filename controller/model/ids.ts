/** Ids of the things this program handles. Branded, so that one cannot pass for another. */

declare const brand: unique symbol;
type Brand<T, B extends string> = T & { readonly [brand]: B };

/** Gitea's task id (`runner.v1.Task.id`, int64) in decimal digits. */
export type TaskId = Brand<string, "TaskId">;
/** `gitea-task-<task id>`: names an assignment in the queue, in records, in the API and at the facade. */
export type AssignmentId = Brand<string, "AssignmentId">;
/** Name of an executor: a function of instance and assignment id, a valid DNS label. */
export type ExecutorName = Brand<string, "ExecutorName">;
/** Short hash of the registration and the namespace: whose executors these are. */
export type Instance = Brand<string, "Instance">;

/** The two kinds of executors a job may ask for. */
export const BACKENDS = ["pod", "vm"] as const;
/** One of {@link BACKENDS}. */
export type BackendName = (typeof BACKENDS)[number];

const PREFIX = "gitea-task-";
const DIGITS = /^[1-9][0-9]{0,18}$/;

/** Reads a task id from decimal digits or an int64; `undefined` if it is not a positive int64. */
export function parseTaskId(value: string | bigint): TaskId | undefined {
  const text = String(value);
  if (!DIGITS.test(text) || BigInt(text) > 0x7fff_ffff_ffff_ffffn) return undefined;
  return text as TaskId;
}

/** The assignment of a task. */
export function assignmentIdOf(task: TaskId): AssignmentId {
  return `${PREFIX}${task}` as AssignmentId;
}

/** The inverse of {@link assignmentIdOf}; `undefined` for anything else. */
export function taskIdOf(assignment: string): TaskId | undefined {
  return assignment.startsWith(PREFIX) ? parseTaskId(assignment.slice(PREFIX.length)) : undefined;
}

/** Reads an assignment id; `undefined` if it is not `gitea-task-<task id>`. */
export function parseAssignmentId(value: string): AssignmentId | undefined {
  return taskIdOf(value) === undefined ? undefined : value as AssignmentId;
}

/** True for the name of a backend. */
export function isBackendName(value: unknown): value is BackendName {
  return value === "pod" || value === "vm";
}

/** `ci-<instance>-<task id>`: deterministic, so that a second create is a conflict and not a second executor. */
export function executorName(instance: Instance, assignment: AssignmentId): ExecutorName {
  return `ci-${instance}-${assignment.slice(PREFIX.length)}` as ExecutorName;
}

/** First 40 bits of SHA-256 over the registration uuid and the namespace, in lower-case hex. */
export async function instanceOf(registrationUuid: string, namespace: string): Promise<Instance> {
  const input = new TextEncoder().encode(`gdr/instance/v1\n${registrationUuid}\n${namespace}`);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", input));
  return digest.slice(0, 5).toHex() as Instance;
}
