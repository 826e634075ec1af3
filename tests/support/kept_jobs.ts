import type { AssignmentInfo } from "../../controller/model/assignment_info.ts";
import { spiffeIdOf } from "../../controller/model/identity.ts";
import {
  assignmentIdOf,
  type BackendName,
  type ExecutorName,
  parseTaskId,
} from "../../controller/model/ids.ts";
import type { TaskRecord } from "../../controller/model/record.ts";

/** Key of jobs that a controller has been working on, and another one finds at its start. */
export const KEPT_JOB = "kept";
/** Far above what the Gitea of a test has given out. */
const FIRST_TASK = 5_000_000;

/** The assignment of the kept job of that index, from 0. */
export function keptAssignment(
  index: number,
  { backend, repository, trustDomain }: {
    readonly backend: BackendName;
    readonly repository: string;
    readonly trustDomain: string;
  },
): AssignmentInfo {
  const derived = spiffeIdOf({ repository, job: KEPT_JOB, fork: false }, trustDomain);
  const taskId = parseTaskId(BigInt(FIRST_TASK + index));
  if (derived.kind === "permanent" || taskId === undefined) {
    throw new RangeError(`Make an assignment of "${repository}": it has no identity or task`);
  }
  return {
    id: assignmentIdOf(taskId),
    taskId,
    backend,
    identity: derived.identity,
    repository,
    job: KEPT_JOB,
    runId: null,
    giteaUrl: null,
    serverUrl: null,
  };
}

/** Its record; `executor` is the one that has claimed it, null while none is known. */
export function keptRecord(
  { backend, repository, job, identity }: AssignmentInfo,
  { epoch, nonce, executor }: {
    readonly epoch: number;
    readonly nonce: string;
    readonly executor: { readonly name: ExecutorName; readonly uid: string } | null;
  },
): TaskRecord {
  const now = Date.now();
  return {
    backend,
    repository,
    job,
    spiffeId: identity.spiffeId,
    fork: false,
    runId: null,
    giteaUrl: null,
    serverUrl: null,
    storedAt: now,
    nonce,
    uid: executor?.uid ?? null,
    claimedBy: executor === null
      ? null
      : { executor: executor.name, gate: "0".repeat(32), at: now },
    logOffset: 0,
    steps: [],
    failures: 0,
    parkedUntil: null,
    released: null,
    terminal: null,
    epoch,
  };
}
