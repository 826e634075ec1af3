import type { Clock } from "../lib/clock.ts";
import type { Entry } from "./entry.ts";
import type { StoredEntry } from "./journal.ts";
import type { Ledger } from "./ledger.ts";
import { type AssignmentId, type BackendName, BACKENDS } from "./model/ids.ts";
import type { ReasonCode, Result } from "./model/reason.ts";
import { holdsSlot, stateName } from "./model/state.ts";
import { phasesOf, type PhaseStatistics } from "./phases.ts";
import type { Pool } from "./pool.ts";
import type { QueueCounts } from "./queue.ts";
import type { ControlFlags } from "./records.ts";
import type { Stranger } from "./strangers.ts";
import {
  assignmentView,
  detailView,
  eventViews,
  executorView,
  iso,
  phaseViews,
  strangerView,
} from "./view_of.ts";
import type {
  AssignmentDetailView,
  AssignmentView,
  BackendView,
  Change,
  ExecutorView,
  LeaderView,
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
  readEvents(query: {
    readonly assignment?: AssignmentId;
    readonly beforeSeq?: number;
    readonly limit: number;
  }): Promise<readonly StoredEntry[]>;
}

/** The read side of the program: one place that turns what is known into what is shown. */
export function createBoard(deps: {
  readonly ledger: Ledger;
  readonly pools: Readonly<Record<BackendName, Pool>>;
  readonly statistics: PhaseStatistics;
  readonly clock: Clock;
  readonly from: BoardSources;
}): Views {
  const { ledger, from, statistics } = deps;

  const waitingIn = (backend: BackendName): Entry[] =>
    [...ledger.entries()]
      .filter((e) => e.info.backend === backend && e.state.kind === "stored")
      .sort((a, b) => order(a) - order(b));

  /** Places among those that wait, computed once per list. */
  const positions = (): ReadonlyMap<AssignmentId, number> => {
    const places = new Map<AssignmentId, number>();
    for (const backend of BACKENDS) {
      waitingIn(backend).forEach((entry, i) => places.set(entry.info.id, i + 1));
    }
    return places;
  };

  const backendView = (name: BackendName): BackendView => {
    const entries = [...ledger.entries()].filter((e) => e.info.backend === name);
    const pool = deps.pools[name];
    const used = pool.holders().size;
    const flags = from.flags(name);
    const counts = from.counts(name);
    const strangers = from.strangers(name).filter((s) => s.ownership === "unknown");
    const start = statistics.of(name, "to_start");
    return {
      name,
      label: from.label(name),
      capacity: pool.capacity(),
      used,
      free: Math.max(0, pool.capacity() - used),
      waiting: entries.filter((e) => e.state.kind === "stored").length,
      running:
        entries.filter((e) => e.state.kind === "running" || e.state.kind === "claimed").length,
      parked: entries.filter((e) => e.state.kind === "parked").length,
      unknown: strangers.length,
      numPending: counts?.numPending ?? null,
      numAckPending: counts?.numAckPending ?? null,
      cordoned: flags.cordon === null
        ? null
        : { by: flags.cordon.by, at: iso(flags.cordon.at), note: flags.cordon.note },
      drain: flags.drain === null ? null : {
        by: flags.drain.by,
        at: iso(flags.drain.at),
        note: flags.drain.note,
        deadline: flags.drain.deadline === null ? null : iso(flags.drain.deadline),
        remaining: used,
        hold: flags.drain.hold,
      },
      startMs: start,
      failures: failuresOf(entries),
      slots: entries.filter((e) => holdsSlot(e.state)).map((e) => ({
        assignmentId: e.info.id,
        executor: e.executor?.name ?? null,
        state: stateName(e.state),
        since: iso(e.stateSince),
      })),
    };
  };

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
    assignments(query) {
      const ended = query.state === "cleaned" || query.state === "invalid";
      const repository = query.repository?.toLowerCase();
      const entries = [...ledger.entries()]
        .filter((e) => query.backend === undefined || e.info.backend === query.backend)
        .filter((e) => query.state === undefined || stateName(e.state) === query.state)
        .filter((e) => repository === undefined || e.info.repository.toLowerCase() === repository)
        .sort((a, b) => ended ? order(b) - order(a) : order(a) - order(b));
      const places = positions();
      const page = pageOf(entries, query);
      const items = page.items.map((e) => assignmentView(e, places.get(e.info.id) ?? null));
      return Promise.resolve({ ...page, items });
    },
    async assignment(id) {
      const entry = ledger.get(id);
      if (entry !== undefined) {
        return detailView(entry, positions().get(id) ?? null, statistics);
      }
      return await fromHistory(id);
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
      return Promise.resolve(pageOf(wanted, query));
    },
    leader: from.leader,
    async history(query) {
      const beforeSeq = query.cursor === null ? undefined : numberOf(query.cursor);
      const stored = await from.readEvents({
        ...(beforeSeq === undefined ? {} : { beforeSeq }),
        limit: query.limit,
      });
      const items = stored.map((entry) => ({
        ...firstOf(eventViews([entry])),
        assignmentId: entry.assignment,
        backend: entry.backend,
      }));
      const last = stored.at(-1);
      const nextCursor = last === undefined || stored.length < query.limit ? null : `${last.seq}`;
      return { items, nextCursor, total: stored.length };
    },
    audit: (query) => Promise.resolve(pageOf([], query)),
    operation: () => Promise.resolve(undefined),
    config: () => from.effectiveConfig,
    subscribe(listener, signal) {
      // Entries are the same objects for life; what they looked like is kept here, to tell old from new.
      const known = new Map<AssignmentId, AssignmentView>();
      const backends = new Map<BackendName, BackendView>();
      ledger.subscribe((entry) => {
        const { id, backend } = entry.info;
        const view = assignmentView(entry, null);
        const old = known.get(id) ?? null;
        if (entry.state.kind === "cleaned") known.delete(id);
        else known.set(id, view);
        listener({ kind: "assignment", old, new: view });
        if (old?.state !== view.state) {
          const now = backendView(backend);
          listener({ kind: "backend", old: backends.get(backend) ?? null, new: now } as Change);
          backends.set(backend, now);
        }
      }, signal);
    },
  };

  /** An assignment that memory has forgotten, from the events stream. */
  const fromHistory = async (id: AssignmentId): Promise<AssignmentDetailView | undefined> => {
    const journal = await from.readEvents({ assignment: id, limit: 500 });
    const [first] = journal;
    const last = journal.at(-1);
    if (first === undefined || last === undefined) return undefined;
    const over = last.event === "cleaned";
    const terminal = journal.find((e) => e.event === "terminal")?.detail ?? null;
    return {
      id,
      taskId: id.slice("gitea-task-".length),
      backend: first.backend,
      state: over ? "cleaned" : "stored",
      reason: null,
      result: resultOf(terminal),
      repository: "",
      owner: "",
      job: "",
      runId: null,
      giteaUrl: null,
      spiffeId: "",
      fork: false,
      position: null,
      streamSequence: null,
      deliveries: null,
      nextTryAt: null,
      failures: 0,
      executor: journal.find((e) => e.executor !== null)?.executor ?? null,
      createdAt: iso(first.at),
      updatedAt: iso(last.at),
      epoch: null,
      events: eventViews(journal),
      phases: phaseViews(phasesOf(journal, first.at), first, statistics),
      lastLines: [],
    };
  };

  return views;
}

function order(entry: Entry): number {
  return entry.sequence ?? entry.createdAt;
}

function resultOf(detail: string | null): Result | null {
  switch (detail) {
    case "success":
    case "failure":
    case "cancelled":
    case "skipped":
      return detail;
    default:
      return null;
  }
}

function failuresOf(entries: readonly Entry[]): Partial<Record<ReasonCode, number>> {
  const failures: Partial<Record<ReasonCode, number>> = {};
  for (const entry of entries) {
    if (entry.result !== "failure" || entry.reason === null) continue;
    failures[entry.reason.code] = (failures[entry.reason.code] ?? 0) + 1;
  }
  return failures;
}

function firstOf<T>(items: readonly T[]): T {
  const [first] = items;
  if (first === undefined) throw new RangeError("Take the first: the list is empty");
  return first;
}

function numberOf(cursor: string): number {
  const value = Number(cursor);
  if (!Number.isSafeInteger(value) || value < 0) {
    throw new RangeError(`Read cursor: "${cursor}" is none of ours`);
  }
  return value;
}

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
