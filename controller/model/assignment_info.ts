import type { AssignmentId, BackendName, TaskId } from "./ids.ts";

/** Who the job is, derived from Gitea's trusted task context only. */
export interface Identity {
  /** `spiffe://<trust domain>/ci/<owner>/<repo>/<job key>`, or `/ci-fork/...`. */
  readonly spiffeId: string;
  /** True if the code may come from outside the repository. */
  readonly fork: boolean;
}

/**
 * What is known of an assignment without its payload. Holds no secret, so it may be logged, put
 * into labels, records and pages, and outlives the payload.
 */
export interface AssignmentInfo {
  readonly id: AssignmentId;
  readonly taskId: TaskId;
  readonly backend: BackendName;
  /** `vm` or `vm-dev`, as the job asked for it; absent when only metadata is left, or for others. */
  readonly label?: "vm" | "vm-dev";
  readonly identity: Identity;
  /** `owner/name` as Gitea writes it. */
  readonly repository: string;
  /** Key of the job in its workflow. */
  readonly job: string;
  /**
   * Git ref of the run as Gitea writes it (`refs/heads/main`, `refs/pull/3/head`): for people, it decides
   * nothing. Absent when Gitea names none, when only metadata is left,
   * and for what earlier releases have stored.
   */
  readonly ref?: string;
  /** Gitea's run id; null when only metadata is left. */
  readonly runId: string | null;
  /** Page of the job at Gitea; null when unknown. */
  readonly giteaUrl: string | null;
  /** Gitea's own base URL as jobs must see it, without a trailing slash. */
  readonly serverUrl: string | null;
}
