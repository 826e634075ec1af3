/** Why an assignment waits or has failed: one code, with the evidence behind it. */

/** Every reason code there is; fixed words that operators and tests rely on. */
export const REASONS = [
  "awaiting_slot",
  "backend_cordoned",
  "backend_unavailable",
  "identity_pending",
  "image_pull",
  "unschedulable",
  "quota",
  "executor_starting",
  "awaiting_claim",
  "claim_timeout",
  "executor_failed",
  "parked",
  "unreadable",
  "payload_lost",
  "executor_lost",
  "cancelled",
  "invalid",
  "max_wait",
] as const;
/** One of {@link REASONS}. */
export type ReasonCode = (typeof REASONS)[number];

/** A reason with its evidence. `detail` is plain text that may be shown to users: never a secret. */
export interface Reason {
  readonly code: ReasonCode;
  readonly detail: string;
  /** Since when this reason holds, milliseconds since the epoch. */
  readonly since: number;
}

/** How a task ended at Gitea; the names of `runner.v1.Result` in lower case. */
export type Result = "success" | "failure" | "cancelled" | "skipped";
