import type { Dated } from "./dated.ts";

/** A list with filters and pages, as its page shows it. */
export type ListData<T> = Listed<T> & Dated;

/** The same without when and where it was read. */
export interface Listed<T> {
  /** Filter name to value; null when it is not set. */
  readonly filters: Readonly<Record<string, string | null>>;
  readonly items: readonly T[];
  readonly total: number;
  readonly nextCursor: string | null;
  /** False on the second and later pages. */
  readonly first: boolean;
  /** The cursor was none of ours: this is the first page instead. */
  readonly badCursor: boolean;
  /** The server that keeps it cannot be read now. */
  readonly unavailable: boolean;
}

/** Path and query of a list with these filters. */
export function listHref(
  path: string,
  filters: Readonly<Record<string, string | null>>,
  cursor: string | null = null,
): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...filters, cursor })) {
    if (value !== null) query.set(name, value);
  }
  return query.size === 0 ? path : `${path}?${query}`;
}
