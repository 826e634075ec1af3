import type { Call } from "../backend.ts";
import type { AuditQuery } from "../views/operating_views.ts";
import { iso } from "../views/view_of.ts";
import type { AuditView, Page } from "../views/views.ts";

/** One action somebody took, or was refused. `at` is milliseconds since the epoch. */
export type AuditEntry = Omit<AuditView, "at"> & { readonly at: number };

/** An entry with its place in the events stream. */
export interface StoredAudit {
  readonly entry: AuditEntry;
  /** Stream sequence. */
  readonly seq: number;
}

/** Who did what, in the events stream. */
export interface AuditLog {
  /** Takes an entry and returns at once; never throws. Kept until it is stored, within bounds. */
  append(entry: AuditEntry): void;
  /** All stored entries, oldest first, the newest ten thousand at most. Throws `QueueError`. */
  read(call: Call): Promise<readonly StoredAudit[]>;
}

/**
 * The page of a query, newest first; `total` counts what matches. The cursor is the place of the last
 * entry of the page before. Throws a `RangeError` when it is none of ours.
 */
export function auditPage(stored: readonly StoredAudit[], query: AuditQuery): Page<AuditView> {
  const before = query.cursor === null ? Infinity : Number(query.cursor);
  if (Number.isNaN(before) || before < 0) {
    throw new RangeError(`Read cursor: "${query.cursor}" is none of ours`);
  }
  // Told again by a leader that went on with it.
  const first = new Set<string>();
  const matching = stored.filter(({ entry }) => {
    if (first.has(entry.id)) return false;
    first.add(entry.id);
    return matches(entry, query);
  });
  const rest = matching.filter(({ seq }) => seq < before).toSorted((a, b) => b.seq - a.seq);
  const items = rest.slice(0, query.limit);
  const last = items.at(-1);
  return {
    items: items.map(({ entry }) => ({ ...entry, at: iso(entry.at) })),
    nextCursor: last !== undefined && rest.length > items.length ? String(last.seq) : null,
    total: matching.length,
  };
}

function matches(entry: AuditEntry, { actor, action, target, result }: AuditQuery): boolean {
  return same(entry.actor, actor) && same(entry.action, action) && same(entry.target, target) &&
    same(entry.result, result);
}

/** Texts are compared whole and without case. */
function same(value: string, wanted: string | undefined): boolean {
  return wanted === undefined || value.toLowerCase() === wanted.toLowerCase();
}
