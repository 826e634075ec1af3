import type { Listed } from "../components/list_query.ts";
import type { Page, PageQuery } from "../controller/views/views.ts";
import { isAway } from "./away.ts";
import type { Answer } from "./define.ts";
import type { RouteContext } from "./route_context.ts";

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
  context: Pick<RouteContext, "url">,
  filters: Readonly<Record<string, string | null>>,
  load: (query: PageQuery) => Promise<Page<T>>,
): Promise<Listed<T>> {
  const wanted = context.url.searchParams.get("cursor") || null;
  const sound = wanted !== null && /^[A-Za-z0-9_-]{1,500}$/.test(wanted);
  const first = async (badCursor: boolean): Promise<Listed<T>> => {
    const page = await load({ limit: LIST_ROWS, cursor: null });
    return { filters, ...page, first: true, badCursor, unavailable: false };
  };
  try {
    if (!sound) return await first(wanted !== null);
    const page = await load({ limit: LIST_ROWS, cursor: wanted });
    return { filters, ...page, first: false, badCursor: false, unavailable: false };
  } catch (error) {
    if (error instanceof RangeError) return await first(true);
    if (!isAway(error)) throw error;
    const none = { items: [], total: 0, nextCursor: null };
    return { filters, ...none, first: !sound, badCursor: false, unavailable: true };
  }
}

/** A page of a list as an answer, with `Link: rel=next` (RFC 8288) when there is one. */
export async function foundPage<T>(
  url: URL,
  load: () => Promise<Page<T>>,
): Promise<Answer<Page<T>>> {
  try {
    const data = await load();
    if (data.nextCursor === null) return { kind: "found", data };
    const next = new URL(url);
    next.searchParams.set("cursor", data.nextCursor);
    return {
      kind: "found",
      data,
      headers: { link: `<${next.pathname}${next.search}>; rel="next"` },
    };
  } catch (error) {
    // The port's word for "not a cursor of mine".
    if (!(error instanceof RangeError)) throw error;
    return {
      kind: "bad",
      detail: "Take the cursor from nextCursor of an earlier page: not one of ours",
    };
  }
}

/** `value` when it is one of `values`. */
export function oneOf<T extends string>(
  values: readonly T[],
  value: string | null,
): T | undefined {
  return values.find((each) => each === value);
}
