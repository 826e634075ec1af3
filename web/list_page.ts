import type { ListData } from "../components/list_query.ts";
import type { Page, PageQuery } from "../controller/views/views.ts";
import { isAway } from "./away.ts";
import type { RouteContext } from "./define.ts";

/** Rows of one page of a list. */
const LIST_ROWS = 100;
const MAX_FILTER = 300;

/** Filters of the URL by name; null when absent or empty. What is too long is cut. */
export function readFilters<N extends string>(
  query: URLSearchParams,
  names: readonly N[],
): Record<N, string | null> {
  const entries = names.map((name) =>
    [name, query.get(name)?.trim().slice(0, MAX_FILTER) || null] as const
  );
  // Every name of N is there.
  return Object.fromEntries(entries) as Record<N, string | null>;
}

/**
 * One page of a list by the cursor in the URL. A cursor that is none of ours gives the first page, with
 * a word about it; a list that cannot be read now is empty, and says so.
 */
export async function loadList<T>(
  context: Pick<RouteContext, "url" | "now" | "lastEventId">,
  filters: Readonly<Record<string, string | null>>,
  load: (query: PageQuery) => Promise<Page<T>>,
): Promise<ListData<T>> {
  const wanted = context.url.searchParams.get("cursor") || null;
  const sound = wanted !== null && /^[A-Za-z0-9_-]{1,500}$/.test(wanted);
  const lastEventId = context.lastEventId();
  const common = { at: new Date(context.now).toISOString(), lastEventId, filters };
  const first = async (badCursor: boolean): Promise<ListData<T>> => {
    const page = await load({ limit: LIST_ROWS, cursor: null });
    return { ...common, ...page, first: true, badCursor, unavailable: false };
  };
  try {
    if (!sound) return await first(wanted !== null);
    const page = await load({ limit: LIST_ROWS, cursor: wanted });
    return { ...common, ...page, first: false, badCursor: false, unavailable: false };
  } catch (error) {
    if (error instanceof RangeError) return await first(true);
    if (!isAway(error)) throw error;
    const none = { items: [], total: 0, nextCursor: null };
    return { ...common, ...none, first: !sound, badCursor: false, unavailable: true };
  }
}

/** `value` when it is one of `values`. */
export function oneOf<T extends string>(
  values: readonly T[],
  value: string | null,
): T | undefined {
  return values.find((each) => each === value);
}
