import type { StoredEntry } from "../journal.ts";
import { type AssignmentId, parseAssignmentId } from "../model/ids.ts";
import type { HistoryQuery } from "./operating_views.ts";
import { eventViews } from "./view_of.ts";
import type { HistoryEntryView, Page } from "./views.ts";

/** Newest first, from before `beforeSeq`; of one assignment when it is given (oldest first). */
export type ReadEvents = (query: {
  readonly assignment?: AssignmentId;
  readonly beforeSeq?: number;
  readonly limit: number;
}) => Promise<readonly StoredEntry[]>;

/** Entries looked at for one page of a filtered history; the next page goes on from there. */
const WINDOW = 500;
const WINDOWS = 8;
const MOST_OF_ONE = 500;

/**
 * One page of the history, newest first. A filter looks at a bounded part of the stream: a page may
 * then hold fewer entries than asked for, or none, and still have a next one. Rejects with a
 * `RangeError` when the cursor is not one of its own.
 */
export async function historyPage(
  read: ReadEvents,
  query: HistoryQuery,
): Promise<Page<HistoryEntryView>> {
  const { limit, cursor } = query;
  const before = cursor === null ? undefined : numberOf(cursor);
  if (query.assignment !== undefined) {
    const id = parseAssignmentId(query.assignment);
    const all = id === undefined ? [] : await read({ assignment: id, limit: MOST_OF_ONE });
    const wanted = all.filter((entry) => isWanted(entry, query)).toReversed()
      .filter(({ seq }) => before === undefined || seq < before);
    const page = wanted.slice(0, limit);
    const last = page.at(-1);
    const nextCursor = last === undefined || wanted.at(-1) === last ? null : `${last.seq}`;
    return { items: page.map(viewOf), nextCursor, total: wanted.length };
  }
  const filtered = query.backend !== undefined || query.event !== undefined;
  const found: StoredEntry[] = [];
  let next = before;
  for (let windows = 0; windows < (filtered ? WINDOWS : 1); windows++) {
    const size = filtered ? WINDOW : limit;
    const entries = await read({
      ...(next === undefined ? {} : { beforeSeq: next }),
      limit: size,
    });
    const wanted = entries.filter((entry) => isWanted(entry, query));
    const room = limit - found.length;
    found.push(...wanted.slice(0, room));
    const last = wanted.length > room ? found.at(-1) : entries.at(-1);
    const over = entries.length < size && wanted.length <= room;
    if (last === undefined || last.seq <= 1 || over) return pageOf(found, null);
    next = last.seq;
    if (found.length >= limit) break;
  }
  return pageOf(found, `${next}`);
}

function pageOf(found: readonly StoredEntry[], nextCursor: string | null) {
  return { items: found.map(viewOf), nextCursor, total: found.length };
}

function isWanted(entry: StoredEntry, { backend, event }: HistoryQuery): boolean {
  return (backend === undefined || entry.backend === backend) &&
    (event === undefined || entry.event === event);
}

function viewOf(entry: StoredEntry): HistoryEntryView {
  const [view] = eventViews([entry]);
  if (view === undefined) throw new TypeError("Show an entry: there is none");
  return { ...view, assignmentId: entry.assignment, backend: entry.backend };
}

/** The number that a cursor of ours is. Throws a `RangeError` for anything else. */
export function numberOf(cursor: string): number {
  const value = Number(cursor);
  if (!Number.isSafeInteger(value) || value < 0) {
    throw new RangeError(`Read cursor: "${cursor}" is none of ours`);
  }
  return value;
}
