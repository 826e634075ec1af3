import type { JsonObject, JsonValue } from "../../proto/runtime.ts";
import type { Identity } from "./assignment_info.ts";

/** Longest SPIFFE ID that the standard allows, in bytes. */
const MAX_SPIFFE_ID_BYTES = 2048;
const SEGMENT = /^[A-Za-z0-9._-]+$/;

/** An identity, or why there can never be one. `detail` is plain text for the job's author. */
export type Derived =
  | { readonly kind: "derived"; readonly identity: Identity }
  | { readonly kind: "permanent"; readonly detail: string };

/** What an identity is made of. */
export interface IdentitySource {
  /** `owner/name` in any case: Gitea compares it without. */
  readonly repository: string;
  /** Job key as it is: `Deploy` and `deploy` are two jobs. */
  readonly job: string;
  readonly fork: boolean;
}

/**
 * The identity of a job from the `context` of Gitea's task, of which a workflow can set
 * nothing but the key of its own job. Pure and injective: two jobs share an ID only if they are the
 * same job of the same repository, as Gitea compares them, with the same fork flag.
 */
export function deriveIdentity(context: JsonObject | undefined, trustDomain: string): Derived {
  const { repository, job } = context ?? {};
  if (typeof repository !== "string") return permanent("the task's context names no repository");
  if (typeof job !== "string") return permanent("the task's context names no job");
  return spiffeIdOf({ repository, job, fork: mayComeFromOutside(context?.event) }, trustDomain);
}

/** The same from its parts, as they are found in metadata. What does not fit is refused, never rewritten. */
export function spiffeIdOf(source: IdentitySource, trustDomain: string): Derived {
  const parts = source.repository.split("/");
  const [owner, name] = parts;
  if (parts.length !== 2 || owner === undefined || name === undefined) {
    return permanent(`repository ${quote(source.repository)} is not "owner/name"`);
  }
  const segments = { owner, repository: name, "job key": source.job };
  for (const [what, segment] of Object.entries(segments)) {
    // Checked before the case is changed: some letters outside ASCII have ASCII lower cases.
    if (!SEGMENT.test(segment) || segment === "." || segment === "..") {
      return permanent(
        `${what} ${
          quote(segment)
        } cannot be part of a SPIFFE ID: use letters, digits, ".", "_" and "-" only`,
      );
    }
  }
  const root = source.fork ? "ci-fork" : "ci";
  const path = `${owner.toLowerCase()}/${name.toLowerCase()}/${source.job}`;
  const spiffeId = `spiffe://${trustDomain}/${root}/${path}`;
  if (spiffeId.length > MAX_SPIFFE_ID_BYTES) {
    return permanent(
      `the SPIFFE ID would have ${spiffeId.length} bytes, at most ${MAX_SPIFFE_ID_BYTES} are allowed: shorten the job key`,
    );
  }
  return { kind: "derived", identity: { spiffeId, fork: source.fork } };
}

/**
 * True when the code may come from outside the repository. Judged by the event's payload alone:
 * `event_name` and `ref` lie (a reusable workflow's child says `workflow_call`, a review comment
 * carries a bare commit). What cannot be understood counts as outside.
 */
function mayComeFromOutside(event: JsonValue | undefined): boolean {
  if (!isObject(event)) return true;
  if (event.pull_request !== undefined && !isInternal(event.pull_request)) return true;
  // A comment on a pull request whose payload does not say which.
  const issue = event.issue;
  if (event.pull_request === undefined && isObject(issue) && isObject(issue.pull_request)) {
    return true;
  }
  if (event.workflow_run === undefined) return false;
  if (!isObject(event.workflow_run)) return true;
  const cause = event.workflow_run.event;
  return typeof cause !== "string" || cause.startsWith("pull_request");
}

function isInternal(pullRequest: JsonValue): boolean {
  if (!isObject(pullRequest)) return false;
  const { head, base } = pullRequest;
  if (!isObject(head) || !isObject(base)) return false;
  const headId = repositoryId(head);
  if (headId === undefined || headId !== repositoryId(base)) return false;
  // The head of a deleted fork has no label; an agit push has `refs/pull/<n>/head` for its ref.
  return typeof head.label === "string" && head.label !== "" &&
    typeof head.ref === "string" && !head.ref.startsWith("refs/");
}

/** Gitea tells the id twice: `repo.id` and `repo_id`. Both must be sound and agree where present. */
function repositoryId(branch: JsonObject): number | undefined {
  const inner = isObject(branch.repo) ? branch.repo.id : undefined;
  const ids = [inner, branch.repo_id].filter((id) => id !== undefined);
  const [id] = ids;
  return typeof id === "number" && Number.isSafeInteger(id) && id > 0 && ids.every((x) => x === id)
    ? id
    : undefined;
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function permanent(detail: string): Derived {
  return { kind: "permanent", detail };
}

function quote(text: string): string {
  return JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}...` : text);
}
