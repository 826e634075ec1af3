import type { AuditResult } from "../actions/action_kinds.ts";
import type { BackendName } from "../model/ids.ts";
import type { ReasonCode } from "../model/reason.ts";
import type { PageQuery } from "./views.ts";

/**
 * Further views, for the pages that operators work with: the last hour of a backend, the canary beside
 * production, what proves that the program is well. As in views.ts: unknown is `null`, never 0 or "".
 */

/** One minute of a backend. Null: this process did not measure then. */
export interface MinuteView {
  /** When the minute began. */
  readonly at: string;
  /** Most stored jobs that waited at one time. */
  readonly waiting: number | null;
  /** Jobs handed to their runner. */
  readonly started: number | null;
  /** From Gitea's hand-out to the runner: median of the jobs that started. */
  readonly startMs: number | null;
  /** Jobs that ended, and how many of them failed. */
  readonly ended: number | null;
  readonly failed: number | null;
}

/** The last hour of a backend, minute by minute, oldest first. */
export interface HourView {
  readonly name: BackendName;
  /** Since when this process measures. */
  readonly since: string;
  readonly minutes: readonly MinuteView[];
}

/** A job that failed, as a short list shows it. */
export interface FailureView {
  readonly id: string;
  readonly repository: string;
  readonly job: string;
  readonly at: string;
  readonly code: ReasonCode | null;
  readonly detail: string | null;
}

/** What jobs of one label did since this process began. */
export interface LabelView {
  readonly label: string;
  /** It is the one that is declared at Gitea. */
  readonly declared: boolean;
  readonly waiting: number;
  readonly running: number;
  readonly ended: number;
  readonly success: number;
  readonly failure: number;
  readonly cancelled: number;
  readonly startMs: { readonly p50: number | null; readonly p95: number | null };
  /** Newest first. */
  readonly lastFailures: readonly FailureView[];
}

/** The label of the `vm` backend, and how its jobs do beside each other. */
export interface CanaryView {
  /** False when no `vm` backend runs here. */
  readonly enabled: boolean;
  /** Declared at Gitea now; null while it is withdrawn or unknown. */
  readonly declared: string | null;
  /** Since when this process knows it to stand there; null while that is not known. */
  readonly declaredSince: string | null;
  /** `VM_RUNNER_LABEL`. */
  readonly configured: string;
  /** What an operator has set instead. */
  readonly override: FlagView<string> | null;
  /** Since when the numbers below count. */
  readonly since: string;
  readonly labels: readonly LabelView[];
  /** Jobs whose label is not known: begun before this process. */
  readonly unlabelled: number;
}

/** A value that an operator has set in place of the configured one. */
export interface FlagView<T> {
  readonly value: T;
  readonly replaced: T;
  readonly by: string;
  readonly at: string;
  readonly note: string;
}

/** One self test as it last went. */
export interface SelfTestView {
  readonly name: string;
  readonly state: "ok" | "failed" | "running" | "unknown";
  /** What it found, or what is the matter and the way out. */
  readonly detail: string | null;
  readonly at: string | null;
  readonly tookMs: number | null;
}

/** Version of a part; `verdict` says whether it is known to work with us. */
export interface VersionView {
  readonly name: string;
  readonly version: string | null;
  readonly verdict: "good" | "bad" | "untried" | "unknown";
  /** Why it is bad, or what to use instead. */
  readonly detail: string | null;
}

/** What proves that the program is well. */
export interface HealthView {
  readonly selfTests: readonly SelfTestView[];
  readonly versions: readonly VersionView[];
}

/** Filters of the history. */
export interface HistoryQuery extends PageQuery {
  readonly backend?: BackendName;
  readonly event?: string;
  readonly assignment?: string;
}

/** Filters of the audit; texts are compared whole and without case. */
export interface AuditQuery extends PageQuery {
  readonly actor?: string;
  readonly action?: string;
  readonly target?: string;
  readonly result?: AuditResult;
}

/** Filters of the list of operations. */
export interface OperationQuery extends PageQuery {
  readonly target?: string;
  readonly state?: "running" | "done" | "failed" | "undone";
}
