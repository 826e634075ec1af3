import type { AuditResult } from "../actions/action_kinds.ts";
import type { AssignmentId, BackendName } from "../model/ids.ts";
import type { ReasonCode, Result } from "../model/reason.ts";
import type { StateName } from "../model/state.ts";
import type {
  AuditQuery,
  CanaryView,
  FlagView,
  HealthView,
  HistoryQuery,
  HourView,
  OperationQuery,
} from "./operating_views.ts";

/**
 * What pages and API show: JSON as it goes out. Unknown is `null`, never 0 or "". Times are RFC 3339
 * UTC strings, durations milliseconds with `Ms` in the name.
 */

/** One source this program depends on. */
export interface SourceView {
  readonly state: "up" | "down" | "degraded" | "unused" | "unknown";
  readonly since: string | null;
  /** Age of the last word from it. */
  readonly ageMs: number | null;
  readonly lastError: string | null;
}

/** Names of the sources. */
export type SourceName = "gitea" | "nats" | "kubernetes" | "spire" | "opensandbox";

/** Who leads, and the Lease's fields where there is one. */
export interface LeaderView {
  readonly mode: "kubernetes" | "none";
  readonly holder: string | null;
  readonly self: string;
  readonly leading: boolean;
  readonly epoch: number | null;
  readonly transitions: number | null;
  readonly acquiredAt: string | null;
  readonly renewedAt: string | null;
  readonly leaseSeconds: number | null;
  readonly replicas: readonly {
    readonly name: string;
    readonly ready: boolean | null;
    readonly leading: boolean;
    readonly seenAt: string | null;
  }[];
}

/** One backend: slots, queue, what operators have set, failures of the last hour. */
export interface BackendView {
  readonly name: BackendName;
  readonly label: string;
  readonly capacity: number;
  readonly used: number;
  readonly free: number;
  readonly waiting: number;
  readonly running: number;
  readonly parked: number;
  readonly unknown: number;
  readonly numPending: number | null;
  readonly numAckPending: number | null;
  readonly cordoned: { readonly by: string; readonly at: string; readonly note: string } | null;
  readonly drain: {
    readonly by: string;
    readonly at: string;
    readonly note: string;
    readonly deadline: string | null;
    readonly remaining: number;
    readonly hold: boolean;
  } | null;
  /** What operators have set in place of the configuration. */
  readonly overrides: {
    readonly capacity: FlagView<number> | null;
    readonly label: FlagView<string> | null;
  };
  readonly startMs: { readonly p50: number | null; readonly p95: number | null };
  readonly failures: Readonly<Partial<Record<ReasonCode, number>>>;
  /** One entry per taken slot, for the blocks. */
  readonly slots: readonly {
    readonly assignmentId: AssignmentId;
    readonly executor: string | null;
    readonly state: StateName;
    readonly since: string;
  }[];
}

/** One assignment as lists show it. */
export interface AssignmentView {
  readonly id: AssignmentId;
  readonly taskId: string;
  readonly backend: BackendName;
  readonly state: StateName;
  readonly reason: {
    readonly code: ReasonCode;
    readonly detail: string;
    readonly since: string;
  } | null;
  readonly result: Result | null;
  readonly repository: string;
  readonly owner: string;
  readonly job: string;
  /** Git ref of the run, as `refs/heads/main`; its author chooses it. */
  readonly ref: string | null;
  readonly runId: string | null;
  readonly giteaUrl: string | null;
  readonly spiffeId: string;
  readonly fork: boolean;
  /** 1 = next; null when it does not wait for a slot. */
  readonly position: number | null;
  readonly streamSequence: number | null;
  readonly deliveries: number | null;
  readonly nextTryAt: string | null;
  readonly failures: number;
  readonly executor: string | null;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly epoch: number | null;
}

/** One event of an assignment's timeline. */
export interface EventView {
  readonly seq: number | null;
  readonly at: string;
  readonly event: string;
  readonly component: string;
  readonly retryDelayMs: number;
  /** Time to the next event; null for the newest. */
  readonly durationMs: number | null;
  readonly executor: string | null;
  readonly phase: string | null;
  readonly detail: string | null;
}

/** One phase of an assignment, beside what is usual for it. */
export interface PhaseView {
  readonly name: string;
  readonly startedAt: string;
  /** Null while it lasts. */
  readonly durationMs: number | null;
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
}

/** One assignment with its timeline. */
export interface AssignmentDetailView extends AssignmentView {
  readonly events: readonly EventView[];
  readonly phases: readonly PhaseView[];
  readonly lastLines: readonly string[];
  /** Of its OpenTelemetry trace, 32 hex digits; null without traces. */
  readonly traceId: string | null;
}

/** One executor, ours or not. */
export interface ExecutorView {
  readonly name: string;
  readonly uid: string | null;
  readonly backend: BackendName;
  readonly assignmentId: string | null;
  readonly phase: string;
  readonly node: string | null;
  readonly createdAt: string | null;
  readonly heartbeatAt: string | null;
  readonly claimed: boolean;
  readonly terminal: boolean;
  readonly ownership: "ours" | "unknown" | "foreign";
  readonly why: string | null;
  readonly recovered: {
    readonly at: string;
    readonly proof: "record" | "heartbeat" | "signature";
  } | null;
}

/** One event of the history over all assignments. */
export interface HistoryEntryView extends EventView {
  readonly assignmentId: string;
  readonly backend: BackendName;
}

/** One action somebody took, or was refused. */
export interface AuditView {
  readonly id: string;
  readonly at: string;
  readonly actor: string;
  readonly role: string;
  readonly action: string;
  readonly target: string;
  readonly before: unknown;
  readonly after: unknown;
  readonly note: string;
  readonly requestId: string;
  readonly result: AuditResult;
  readonly error: string | null;
}

/** One action that takes time. */
export interface OperationView {
  readonly id: string;
  readonly action: string;
  readonly target: string;
  readonly state: "running" | "done" | "failed" | "undone";
  readonly progress: { readonly done: number; readonly total: number };
  readonly startedAt: string;
  readonly endedAt: string | null;
  readonly by: string;
  readonly note: string;
  /** What stood there before, and what stands there since. */
  readonly before: unknown;
  readonly after: unknown;
  readonly error: string | null;
}

/** Everything of the first page but its jobs. */
export interface StatusView {
  readonly version: string;
  /** When Gitea is asked next; null or absent while that is not known (standby, a fetch in flight). */
  readonly nextFetchAt?: string | null;
  readonly profile: "embedded" | "production";
  readonly leader: LeaderView;
  readonly sources: Readonly<Record<SourceName, SourceView>>;
  readonly backends: readonly BackendView[];
  /** False until recovery has finished. */
  readonly ready: boolean;
  /**
   * Only of a process that does not lead: of when the newest event is from which its lists are made;
   * null while there is none.
   */
  readonly eventsAt?: string | null;
}

/** One page of a list. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly nextCursor: string | null;
  readonly total: number;
}

/** Query of a page; `cursor` is opaque, made of `[A-Za-z0-9_-]`, and comes from `nextCursor`. */
export interface PageQuery {
  readonly limit: number;
  readonly cursor: string | null;
}

/** What changed, for the event stream. `old` is null when it is new, `new` when it is gone. */
export type Change =
  | {
    readonly kind: "assignment";
    readonly old: AssignmentView | null;
    readonly new: AssignmentView | null;
  }
  | {
    readonly kind: "executor";
    readonly old: ExecutorView | null;
    readonly new: ExecutorView | null;
  }
  | { readonly kind: "backend"; readonly old: BackendView | null; readonly new: BackendView }
  | { readonly kind: "leader"; readonly old: LeaderView | null; readonly new: LeaderView }
  | { readonly kind: "operation"; readonly old: OperationView | null; readonly new: OperationView };

/** Read side of the program; works on the leader, on a standby, and before recovery has finished. */
export interface Views {
  status(): StatusView;
  backends(): readonly BackendView[];
  backend(name: BackendName): BackendView | undefined;
  /** The last hour, minute by minute; undefined when there is no such backend. */
  hour(name: BackendName): HourView | undefined;
  /**
   * Live and ended ones. Order: by time of hand-out, oldest first (stored ones by stream sequence);
   * when all wanted states are `cleaned` or `invalid`, newest first. `states` stands for any of them.
   * `repository` is `owner/name`, compared without case. Rejects with a `RangeError` when the cursor is
   * not one of its own.
   */
  assignments(
    query: PageQuery & {
      readonly backend?: BackendName;
      readonly state?: StateName;
      readonly states?: readonly StateName[];
      readonly repository?: string;
    },
  ): Promise<Page<AssignmentView>>;
  /** Also ended ones, as far back as the events stream goes. */
  assignment(id: AssignmentId): Promise<AssignmentDetailView | undefined>;
  executors(
    query: PageQuery & { readonly backend?: BackendName; readonly recovered?: boolean },
  ): Promise<Page<ExecutorView>>;
  leader(): LeaderView;
  canary(): CanaryView;
  /** Newest first; with a filter, `total` counts only what was read. */
  history(query: HistoryQuery): Promise<Page<HistoryEntryView>>;
  /** Newest first. */
  audit(query: AuditQuery): Promise<Page<AuditView>>;
  operation(id: string): Promise<OperationView | undefined>;
  /** Newest first. */
  operations(query: OperationQuery): Promise<Page<OperationView>>;
  health(): HealthView;
  /** Runs the self tests again; resolves when they have ended, at the latest when `signal` aborts. */
  recheck(signal: AbortSignal): Promise<void>;
  /** Effective configuration without secrets: variable name to value. */
  config(): Readonly<Record<string, string | null>>;
  /** Calls back after each change until the signal aborts; never throws into the caller. */
  subscribe(listener: (change: Change) => void, signal: AbortSignal): void;
}
