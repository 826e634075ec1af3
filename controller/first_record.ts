import type { AssignmentInfo } from "./model/assignment_info.ts";
import { taskIdOf } from "./model/ids.ts";
import type { TaskRecord } from "./model/record.ts";
import type { StoredMessage } from "./queue.ts";

/** The record of an assignment nobody has worked on. */
export function firstRecord(
  info: AssignmentInfo,
  storedAt: number,
  nonce: string,
): Omit<TaskRecord, "epoch"> {
  return {
    backend: info.backend,
    repository: info.repository,
    job: info.job,
    ...info.ref === undefined ? {} : { ref: info.ref },
    spiffeId: info.identity.spiffeId,
    fork: info.identity.fork,
    runId: info.runId,
    giteaUrl: info.giteaUrl,
    serverUrl: info.serverUrl,
    storedAt,
    nonce,
    uid: null,
    claimedBy: null,
    logOffset: 0,
    steps: [],
    failures: 0,
    parkedUntil: null,
    released: null,
    terminal: null,
  };
}

/**
 * What is known of a message that cannot be opened: enough to show it and to tell Gitea. Throws when the message has
 * no assignment's id.
 */
export function infoOf(message: StoredMessage, record: TaskRecord | undefined): AssignmentInfo {
  const taskId = taskIdOf(message.id);
  if (taskId === undefined) throw new Error(`Read message: "${message.id}" is no assignment id`);
  return {
    id: message.id,
    taskId,
    backend: message.backend,
    identity: { spiffeId: record?.spiffeId ?? "", fork: record?.fork ?? true },
    repository: record?.repository ?? message.headers["Gdr-Repository"] ?? "",
    job: record?.job ?? message.headers["Gdr-Job"] ?? "",
    ...record?.ref === undefined ? {} : { ref: record.ref },
    runId: record?.runId ?? message.headers["Gdr-Run-Id"] ?? null,
    giteaUrl: record?.giteaUrl ?? null,
    serverUrl: record?.serverUrl ?? null,
  };
}
