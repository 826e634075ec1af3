import type { Clock } from "../../lib/clock.ts";
import { createAssignmentLists } from "./assignment_lists.ts";
import { backendView as makeBackendView } from "./backend_view.ts";
import { createLabelLog, VM_LABELS } from "./canary.ts";
import { tellChanges } from "./changes.ts";
import type { Entry } from "../entry.ts";
import { createFailureLog } from "./failure_log.ts";
import { historyPage, numberOf, type ReadEvents } from "./history_pages.ts";
import { createHourLog } from "./hour_log.ts";
import { type JournalEntry, wholeJournal } from "../journal.ts";
import { journalView } from "./journal_view.ts";
import type { Ledger } from "../ledger.ts";
import { type AssignmentId, type BackendName, BACKENDS } from "../model/ids.ts";
import type { AuditQuery, HealthView, OperationQuery } from "./operating_views.ts";
import { flagView } from "./backend_view.ts";
import { type Operation, operationView } from "../actions/operation.ts";
import type { PhaseStatistics } from "./phases.ts";
import type { Pool } from "../pool.ts";
import type { QueueCounts } from "../queue.ts";
import type { ControlFlags } from "../records.ts";
import type { Stranger } from "../strangers.ts";
import {
  detailView,
  executorView,
  iso,
  isoOrNull,
  type JournalledView,
  strangerView,
} from "./view_of.ts";
import type {
  AuditView,
  ExecutorView,
  LeaderView,
  OperationView,
  Page,
  PageQuery,
  StatusView,
  Views,
} from "./views.ts";

/** What the board reads beside the ledger. */
export interface BoardSources {
  readonly version: string;
  readonly profile: StatusView["profile"];
  readonly enabled: readonly BackendName[];
  readonly effectiveConfig: Readonly<Record<string, string | null>>;
  leader(): LeaderView;
  sources(): StatusView["sources"];
  flags(backend: BackendName): ControlFlags;
  label(backend: BackendName): string;
  counts(backend: BackendName): QueueCounts | null;
  strangers(backend: BackendName): readonly Stranger[];
  ready(): boolean;
  nextFetchAt(): number | null;
  /** Newest first, from before `beforeSeq`; of one assignment when `assignment` is given (oldest first). */
  readonly readEvents: ReadEvents;
  /** What operators did; without it there is nothing to show. Newest first. */
  audit?(query: AuditQuery): Promise<Page<AuditView>>;
  operation?(id: string): Promise<OperationView | undefined>;
  /** Newest first. */
  operations?(query: OperationQuery): Promise<Page<OperationView>>;
  /** Calls back with each change of an operation until the signal aborts. */
  onOperation?(
    listener: (old: Operation | null, now: Operation) => void,
    signal: AbortSignal,
  ): void;
  /** Calls back when the flags of a backend have changed, until the signal aborts. */
  onFlags?(listener: (backend: BackendName) => void, signal: AbortSignal): void;
  /** `VM_RUNNER_LABEL`; `vm` when not given. */
  readonly configuredVmLabel?: string;
  /** Whether the backend's label stands at Gitea now; null while that is not known. */
  declared?(backend: BackendName): boolean | null;
  /** Since when it stands there, milliseconds since the epoch; null where that is not known. */
  declaredSince?(backend: BackendName): number | null;
  health?(): HealthView;
  recheck?(signal: AbortSignal): Promise<void>;
  /** Of an assignment's trace; undefined without traces. */
  traceId?(id: AssignmentId): string | undefined;
}

/** The read side of the program: one place that turns what is known into what is shown. */
export function createBoard(deps: {
  readonly ledger: Ledger;
  readonly pools: Readonly<Record<BackendName, Pool>>;
  readonly statistics: PhaseStatistics;
  readonly clock: Clock;
  readonly from: BoardSources;
}): Views {
  const { ledger, from, statistics, clock } = deps;
  /** The board lives as long as the ledger. */
  const forever = new AbortController().signal;

  const failures = createFailureLog(clock);
  const counted = new WeakSet<Entry>();
  ledger.subscribe((entry) => {
    if (entry.state.kind !== "cleaned" || counted.has(entry)) return;
    counted.add(entry);
    if (entry.result === "failure" && entry.reason !== null) {
      failures.add(entry.info.backend, entry.reason.code);
    }
  }, forever);
  const hours = createHourLog({ ledger, clock }, forever);
  const labelLog = createLabelLog({ ledger, clock }, forever);
  const lists = createAssignmentLists(ledger, forever);
  const backendView = (name: BackendName) =>
    makeBackendView({
      ledger,
      pools: deps.pools,
      statistics,
      failures,
      flags: from.flags,
      label: from.label,
      counts: from.counts,
    }, name);

  const views: Views = {
    status: () => ({
      version: from.version,
      profile: from.profile,
      leader: from.leader(),
      sources: from.sources(),
      backends: views.backends(),
      nextFetchAt: from.nextFetchAt() === null ? null : iso(from.nextFetchAt() ?? 0),
      ready: from.ready(),
    }),
    backends: () => from.enabled.map(backendView),
    backend: (name) => from.enabled.includes(name) ? backendView(name) : undefined,
    hour: (name) => from.enabled.includes(name) ? hours.of(name) : undefined,
    assignments: (query) => Promise.try(() => lists.page(query)),
    async assignment(id) {
      const view = await journalled(id);
      return view && { ...view, traceId: from.traceId?.(id) ?? null };
    },
    executors(query) {
      const all: ExecutorView[] = [];
      for (const entry of ledger.entries()) {
        const view = executorView(entry);
        if (view !== undefined) all.push(view);
      }
      for (const name of BACKENDS) {
        all.push(...from.strangers(name).map((s) => strangerView(s, name)));
      }
      const wanted = all
        .filter((e) => query.backend === undefined || e.backend === query.backend)
        .filter((e) => query.recovered === undefined || (e.recovered !== null) === query.recovered);
      return Promise.try(() => pageOf(wanted, query));
    },
    leader: from.leader,
    canary() {
      const { label } = from.flags("vm");
      const value = from.label("vm");
      const stands = from.declared?.("vm") ?? null;
      return {
        enabled: from.enabled.includes("vm"),
        declared: stands === false ? null : value,
        declaredSince: stands === true ? isoOrNull(from.declaredSince?.("vm") ?? null) : null,
        configured: from.configuredVmLabel ?? label?.replaced ?? value,
        override: flagView(label),
        since: iso(labelLog.since),
        labels: VM_LABELS.map((name) => ({
          ...labelLog.of(name),
          declared: stands !== false && name === value,
        })),
        unlabelled: labelLog.unlabelled(),
      };
    },
    history: (query) => historyPage(from.readEvents, query),
    audit: async (query) => await from.audit?.(query) ?? pageOf([], query),
    operation: async (id) => await from.operation?.(id),
    operations: async (query) => await from.operations?.(query) ?? pageOf([], query),
    health: () => from.health?.() ?? { selfTests: [], versions: [] },
    recheck: async (signal) => await from.recheck?.(signal),
    config: () => from.effectiveConfig,
    subscribe(listener, signal) {
      tellChanges({ ledger, clock, backendView, enabled: from.enabled }, listener, signal);
      const told = new Map(from.enabled.map((name) => [name, backendView(name)]));
      from.onOperation?.((old, now) => {
        const before = old === null ? null : operationView(old);
        listener({ kind: "operation", old: before, new: operationView(now) });
      }, signal);
      // Flags are no change of the ledger.
      from.onFlags?.((name) => {
        if (!from.enabled.includes(name)) return;
        const view = backendView(name);
        listener({ kind: "backend", old: told.get(name) ?? null, new: view });
        told.set(name, view);
      }, signal);
    },
  };

  const journalled = async (id: AssignmentId): Promise<JournalledView | undefined> => {
    const entry = ledger.get(id);
    if (entry === undefined) return await fromHistory(id);
    const journal = entry.restored ? await restoredJournal(entry) : entry.journal;
    return detailView(entry, journal, lists.positionOf(entry), statistics);
  };

  const restoredJournal = async ({ info, journal }: Entry): Promise<readonly JournalEntry[]> => {
    const stored = await from.readEvents({ assignment: info.id, limit: MAX_EVENTS })
      // What is known here is shown even while the stream cannot be read.
      .catch(() => []);
    return wholeJournal(stored, journal);
  };

  /** An assignment that memory has forgotten, from the events stream. */
  const fromHistory = async (id: AssignmentId): Promise<JournalledView | undefined> => {
    const journal = await from.readEvents({ assignment: id, limit: MAX_EVENTS });
    return journalView(id, journal, statistics);
  };

  return views;
}

const MAX_EVENTS = 500;

/** A page by offset; the cursor is the index of the next item. */
function pageOf<T>(all: readonly T[], query: PageQuery): Page<T> {
  const start = query.cursor === null ? 0 : numberOf(query.cursor);
  const end = start + query.limit;
  return {
    items: all.slice(start, end),
    nextCursor: end < all.length ? String(end) : null,
    total: all.length,
  };
}
