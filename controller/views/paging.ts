import type { Entry } from "../entry.ts";
import type { Page, PageQuery } from "./views.ts";

/**
 * Order of assignments: by stream sequence; those without one were admitted before a restart, and so
 * before all that have one, by the time of their hand-out.
 */
export function byAge(a: Entry, b: Entry): number {
  return compare(keyOf(a), keyOf(b));
}

type Key = readonly [sequence: number, createdAt: number, taskId: number];

function keyOf(entry: Entry): Key {
  return [entry.sequence ?? 0, entry.createdAt, Number(entry.info.taskId)];
}

function compare(a: Key, b: Key): number {
  return a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
}

/**
 * The page after the query's cursor, of entries in the order of {@link byAge} or, with `newestFirst`,
 * against it. The cursor names the last entry of the page before, so that what comes and goes between
 * two pages neither repeats nor hides others. Throws a `RangeError` when it is none of ours.
 */
export function pageAfter(
  sorted: readonly Entry[],
  query: PageQuery,
  newestFirst: boolean,
): Page<Entry> {
  const after = query.cursor === null ? null : readCursor(query.cursor);
  const isLater = (entry: Entry) =>
    after === null ||
    (newestFirst ? compare(keyOf(entry), after) < 0 : compare(keyOf(entry), after) > 0);
  const start = sorted.findIndex(isLater);
  const items = start < 0 ? [] : sorted.slice(start, start + query.limit);
  const last = items.at(-1);
  const more = last !== undefined && sorted.at(-1) !== last;
  return { items, nextCursor: more ? keyOf(last).join("-") : null, total: sorted.length };
}

/** A page by place; the cursor is the place of the next item. Throws a `RangeError` as above. */
export function pageByPlace<T>(all: readonly T[], query: PageQuery): Page<T> {
  const start = Number(query.cursor ?? 0);
  if (!Number.isSafeInteger(start) || start < 0) {
    throw new RangeError(`Read cursor: "${query.cursor}" is none of ours`);
  }
  const end = start + query.limit;
  return {
    items: all.slice(start, end),
    nextCursor: end < all.length ? String(end) : null,
    total: all.length,
  };
}

function readCursor(cursor: string): Key {
  const match = /^([0-9]{1,16})-([0-9]{1,16})-([0-9]{1,19})$/.exec(cursor);
  if (match === null) throw new RangeError(`Read cursor: "${cursor}" is none of ours`);
  return [Number(match[1]), Number(match[2]), Number(match[3])];
}
