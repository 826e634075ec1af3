import type { Clock } from "../lib/clock.ts";
import type { Entry } from "./entry.ts";
import { tellChanges } from "./changes.ts";
import { createFailureLog } from "./failure_log.ts";
import type { JournalEntry, StoredEntry } from "./journal.ts";
import { journalView } from "./journal_view.ts";
import type { Ledger } from "./ledger.ts";
import { type AssignmentId, type BackendName, BACKENDS } from "./model/ids.ts";
import { stateName } from "./model/state.ts";
import { byAge, pageAfter } from "./paging.ts";
import type { PhaseStatistics } from "./phases.ts";
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
  strangerView,
} from "./view_of.ts";
import type {
  AssignmentDetailView,
  BackendView,
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

  const failures = createFailureLog(deps.clock);
  const counted = new WeakSet<Entry>();
  ledger.subscribe((entry) => {
    if (entry.state.kind !== "cleaned" || counted.has(entry)) return;
    counted.add(entry);
    if (entry.result === "failure" && entry.reason !== null) {
      failures.add(entry.info.backend, entry.reason.code);
    }
  }, new AbortController().signal);

  /** Places among those that wait, computed once per list. */
  const positions = (): ReadonlyMap<AssignmentId, number> => {
    const places = new Map<AssignmentId, number>();
    for (const backend of BACKENDS) {
      const waiting = [...ledger.inState(backend, "stored")].sort(byAge);
      waiting.forEach((entry, i) => places.set(entry.info.id, i + 1));
    }
    return places;
  };

  const positionOf = (entry: Entry): number | null => {
    if (entry.state.kind !== "stored") return null;
    let position = 1;
    for (const other of ledger.inState(entry.info.backend, "stored")) {
      if (byAge(other, entry) < 0) position++;
    }
    return position;
  };

  /** Costs as much as there are slots, however many wait: it is made at every change of a state. */
  const backendView = (name: BackendName): BackendView => {
    const pool = deps.pools[name];
    const used = pool.holders().size;
    const unknown = pool.unknown();
    const flags = from.flags(name);
    const counts = from.counts(name);
    const count = (kind: Entry["state"]["kind"]) => ledger.inState(name, kind).size;
    const holders = [...pool.holders()].flatMap((id) => ledger.get(id) ?? []);
    return {
      name,
      label: from.label(name),
      capacity: pool.capacity(),
      used,
      free: Math.max(0, pool.capacity() - used - unknown),
      waiting: count("stored"),
      running: count("running") + count("claimed"),
      parked: count("parked"),
      unknown,
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
      startMs: statistics.of(name, "to_start"),
      failures: failures.of(name),
      slots: holders.map((e) => ({
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
      const newestFirst = query.state === "cleaned" || query.state === "invalid";
      const repository = query.repository?.toLowerCase();
      const order = newestFirst ? (a: Entry, b: Entry) => byAge(b, a) : byAge;
      const entries = [...ledger.entries()]
        .filter((e) => query.backend === undefined || e.info.backend === query.backend)
        .filter((e) => query.state === undefined || stateName(e.state) === query.state)
        .filter((e) => repository === undefined || e.info.repository.toLowerCase() === repository)
        .sort(order);
      const page = pageAfter(entries, query, newestFirst);
      const places = positions();
      const items = page.items.map((e) => assignmentView(e, places.get(e.info.id) ?? null));
      return Promise.resolve({ ...page, items });
    },
    async assignment(id) {
      const entry = ledger.get(id);
      if (entry === undefined) return await fromHistory(id);
      const journal = entry.restored ? await wholeJournal(entry) : entry.journal;
      return detailView(entry, journal, positionOf(entry), statistics);
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
      const more = last !== undefined && last.seq > 1 && stored.length >= query.limit;
      const nextCursor = more ? `${last.seq}` : null;
      return { items, nextCursor, total: stored.length };
    },
    audit: (query) => Promise.resolve(pageOf([], query)),
    operation: () => Promise.resolve(undefined),
    config: () => from.effectiveConfig,
    subscribe: (listener, signal) =>
      tellChanges({ ledger, backendView, enabled: from.enabled }, listener, signal),
  };

  /** An assignment that an earlier process began: its events, then ours. */
  const wholeJournal = async (entry: Entry): Promise<readonly JournalEntry[]> => {
    const stored = await from.readEvents({ assignment: entry.info.id, limit: MAX_EVENTS })
      // What is known here is shown even while the stream cannot be read.
      .catch(() => []);
    const [first] = entry.journal;
    // Our own are written to the stream a little later: they are taken from here.
    return [
      ...first === undefined ? stored : stored.filter((e) => e.at < first.at),
      ...entry.journal,
    ];
  };

  /** An assignment that memory has forgotten, from the events stream. */
  const fromHistory = async (id: AssignmentId): Promise<AssignmentDetailView | undefined> => {
    const journal = await from.readEvents({ assignment: id, limit: MAX_EVENTS });
    return journalView(id, journal, statistics);
  };

  return views;
}

const MAX_EVENTS = 500;

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
