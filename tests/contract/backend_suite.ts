import assert from "node:assert/strict";
import type { Backend, Executor, ExecutorSpec } from "../../controller/backend.ts";
import type { AssignmentInfo } from "../../controller/model/assignment_info.ts";
import {
  assignmentIdOf,
  type BackendName,
  type ExecutorName,
  executorName,
  type Instance,
  parseTaskId,
} from "../../controller/model/ids.ts";
import { buildMetadata } from "../../controller/model/metadata.ts";
import { call } from "../support/calls.ts";
import { eventually } from "../support/eventually.ts";

/** A backend with the means to provoke what the suite looks at. Disposing removes everything. */
export interface BackendWorld extends AsyncDisposable {
  readonly backend: Backend;
  /** Another backend object on the same executors, as after a restart of the controller. */
  reopen(): Promise<Backend>;
  /** Makes the executor print a line and end by itself. */
  end(name: ExecutorName, how: { readonly code: number; readonly line: string }): Promise<void>;
  /** Damages what the backend keeps about the executor, so that it cannot be read. */
  corrupt(name: ExecutorName): Promise<void>;
  /** The SPIFFE ID that this executor would be given now; null if none. */
  boundTo(name: ExecutorName): Promise<string | null>;
  /** Somebody deletes what gives it its SPIFFE ID. Undefined where nobody can. */
  readonly unbind?: (name: ExecutorName) => Promise<void>;
  /** The environment that its program sees. */
  environmentOf(name: ExecutorName): Promise<Readonly<Record<string, string>>>;
  /** The next create is done, but its answer is lost. Undefined where answers cannot be lost. */
  readonly loseNextAnswer?: () => void;
  /**
   * What its server keeps of an end, `everything` by default. OpenSandbox has no last lines
   * (`exit_code`), and under Kubernetes tells of failures only, by a bare word (`failure`).
   */
  readonly tellsEnd?: "everything" | "exit_code" | "failure";
}

/** Promises that a backend may be without; none of the others may. */
export type Unpromised = "lost answers" | "bindings that can be seen";

/** Prefix of the suite's metadata. */
export const PREFIX = "ci.example.org";
const INSTANCE = "0011223344" as Instance;
const CAPABILITY = "capability-0123456789abcdef";

/** What the suite asks a backend to make for a task. */
export function specOf(task: string, backend: BackendName): ExecutorSpec {
  const taskId = parseTaskId(task);
  assert.ok(taskId !== undefined);
  const spiffeId = `spiffe://example.org/ci/owner/repo/job-${task}`;
  const assignment: AssignmentInfo = {
    id: assignmentIdOf(taskId),
    taskId,
    backend,
    identity: { spiffeId, fork: false },
    repository: "owner/repo",
    job: `job-${task}`,
    runId: null,
    giteaUrl: null,
    serverUrl: null,
  };
  return {
    name: executorName(INSTANCE, assignment.id),
    metadata: buildMetadata(assignment, { prefix: PREFIX, instance: INSTANCE }),
    environment: {
      CI_ASSIGNMENT_ID: assignment.id,
      CI_RUNNER_CAPABILITY: CAPABILITY,
      CI_SPIFFE_ID: spiffeId,
      ODD_VALUE: 'it\'s "odd" $(echo no) `echo no`\nsecond line',
    },
    assignment,
  };
}

/** Where cases of the contract are added. */
export interface Contract {
  readonly kind: BackendName;
  /** Adds a case; `needs`: left out where a backend is without that. */
  test(
    promise: string,
    run: (world: BackendWorld, backend: Backend) => Promise<void>,
    needs?: Unpromised,
  ): void;
}

/** Waits until the backend knows what an identity is bound to. */
export async function withTarget(backend: Backend, executor: Executor): Promise<Executor> {
  return await eventually(async () => {
    const found = await backend.find(executor.name, call);
    return found?.identityTarget == null ? undefined : found;
  }, { what: "the identity target" });
}

/** Waits until there is no executor of that name. */
export async function gone(backend: Backend, name: ExecutorName): Promise<void> {
  await eventually(async () => await backend.find(name, call) === undefined, {
    what: "the executor to be gone",
  });
}
