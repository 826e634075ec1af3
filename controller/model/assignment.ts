import type { JsonObject, JsonValue } from "../../proto/runtime.ts";
import type { Task } from "../../proto/gen/runner/v1/messages_pb.ts";
import type { AssignmentInfo } from "./assignment_info.ts";
import { deriveIdentity } from "./identity.ts";
import { assignmentIdOf, type BackendName, parseTaskId, type TaskId } from "./ids.ts";
import { runsOn, WorkflowError } from "./workflow.ts";

/** What placing depends on beside the task. */
export interface PlaceOptions {
  readonly trustDomain: string;
  /** Where jobs go that say only `self-hosted`; null = nowhere. */
  readonly defaultBackend: BackendName | null;
}

/** Git itself stops at about this: a ref is a path of a file. */
const MAX_REF = 255;

/** Where a task belongs, or why it can never become an assignment. */
export type Placed =
  | { readonly kind: "placed"; readonly info: AssignmentInfo }
  /**
   * Not to be tried again: `detail` says to the job's author why, and what to write instead.
   * `taskId` is null when even that is unusable; then there is nobody to tell.
   */
  | { readonly kind: "permanent"; readonly taskId: TaskId | null; readonly detail: string };

/** Backend, identity and the rest of what is known of a task. Pure; never throws. */
export function placeTask(task: Task, options: PlaceOptions): Placed {
  const taskId = parseTaskId(task.id);
  if (taskId === undefined) {
    return { kind: "permanent", taskId: null, detail: `task id "${task.id}" is not positive` };
  }
  const permanent = (detail: string): Placed => ({ kind: "permanent", taskId, detail });
  const context = task.context ?? {};
  const derived = deriveIdentity(context, options.trustDomain);
  if (derived.kind === "permanent") return permanent(derived.detail);
  const [repository, job] = [text(context.repository), text(context.job)];
  const backend = chooseBackend(task.workflowPayload, job, options.defaultBackend);
  if (backend.kind === "refused") return permanent(backend.detail);
  const serverUrl = baseUrl(text(context.server_url));
  const runId = parseTaskId(text(context.run_id)) ?? null;
  const ref = text(context.ref).slice(0, MAX_REF);
  const jobId = jobIdOf(text(context.gitea_runtime_token));
  return {
    kind: "placed",
    info: {
      id: assignmentIdOf(taskId),
      taskId,
      backend: backend.name,
      ...(backend.label === undefined ? {} : { label: backend.label }),
      identity: derived.identity,
      repository,
      job,
      ...(ref === "" ? {} : { ref }),
      runId,
      giteaUrl: serverUrl === null || runId === null || jobId === null
        ? null
        : `${serverUrl}/${repository}/actions/runs/${runId}/jobs/${jobId}`,
      serverUrl,
    },
  };
}

type Choice =
  | {
    readonly kind: "chosen";
    readonly name: BackendName;
    readonly label?: "vm" | "vm-dev";
  }
  | { readonly kind: "refused"; readonly detail: string };

function chooseBackend(
  payload: Uint8Array | undefined,
  job: string,
  defaultBackend: BackendName | null,
): Choice {
  let labels: string[];
  try {
    labels = runsOn(payload ?? new Uint8Array(), job);
  } catch (error) {
    if (error instanceof WorkflowError) return { kind: "refused", detail: error.message };
    throw error;
  }
  const has = (label: string) => labels.includes(label);
  const found = `found ${labels.map((label) => JSON.stringify(label)).join(", ")}`;
  const instead = `write "runs-on: [self-hosted, pod]" or "runs-on: [self-hosted, vm]" instead`;
  const refused = (text: string): Choice => ({
    kind: "refused",
    detail: `${text}: ${found}; ${instead}`,
  });
  if (!has("self-hosted")) return refused("task runs-on labels must include self-hosted");
  // The canary label and the production label are one backend: a stored task of either still runs.
  const [pod, vm] = [has("pod"), has("vm") || has("vm-dev")];
  if (pod && !vm) return { kind: "chosen", name: "pod" };
  if (vm && !pod) return { kind: "chosen", name: "vm", label: has("vm") ? "vm" : "vm-dev" };
  const bare = labels.every((label) => label === "self-hosted");
  return bare && defaultBackend !== null
    ? { kind: "chosen", name: defaultBackend }
    : refused("task runs-on labels must select exactly one of pod or vm");
}

/** Gitea's base URL without trailing slash; null unless it is plain http or https. */
function baseUrl(value: string): string | null {
  const url = URL.parse(value);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) return null;
  if (url.username !== "" || url.password !== "") return null;
  return `${url.origin}${url.pathname}`.replace(/\/+$/, "");
}

/**
 * The job id, which only the runtime token's claims tell (HS256 JWT with TaskID, RunID and JobID).
 * Read without verification: it makes a link for people and decides nothing.
 */
function jobIdOf(token: string): string | null {
  const payload = token.split(".")[1];
  if (payload === undefined) return null;
  try {
    const bytes = Uint8Array.fromBase64(payload.replace(/=+$/, ""), { alphabet: "base64url" });
    const claims: unknown = JSON.parse(new TextDecoder().decode(bytes));
    if (typeof claims !== "object" || claims === null || !("JobID" in claims)) return null;
    const id = claims.JobID;
    if (typeof id !== "number" && typeof id !== "string") return null;
    return parseTaskId(String(id)) ?? null;
  } catch {
    return null;
  }
}

function text(value: JsonValue | JsonObject | undefined): string {
  if (typeof value === "string") return value;
  return typeof value === "number" ? String(value) : "";
}
