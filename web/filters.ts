import { AUDIT_RESULTS } from "../controller/actions/action_kinds.ts";
import { BACKENDS } from "../controller/model/ids.ts";
import type {
  AuditView,
  HistoryEntryView,
  Page,
  PageQuery,
  Views,
} from "../controller/views/views.ts";
import { oneOf, readFilters } from "./list_page.ts";
import { withoutUndefined } from "./without_undefined.ts";

/** Filters of the history in a URL. */
export function readHistoryFilters(query: URLSearchParams) {
  return readFilters(query, ["backend", "event", "assignment"]);
}

/** Reads pages of the history with these filters. */
export function readHistory(
  views: Views,
  filters: ReturnType<typeof readHistoryFilters>,
): (query: PageQuery) => Promise<Page<HistoryEntryView>> {
  const set = withoutUndefined({
    backend: oneOf(BACKENDS, filters.backend),
    event: filters.event ?? undefined,
    assignment: filters.assignment ?? undefined,
  });
  return (query) => views.history({ ...query, ...set });
}

/** Filters of the audit in a URL. */
export function readAuditFilters(query: URLSearchParams) {
  return readFilters(query, ["result", "action", "actor", "target"]);
}

/** Reads pages of the audit with these filters. */
export function readAudit(
  views: Views,
  filters: ReturnType<typeof readAuditFilters>,
): (query: PageQuery) => Promise<Page<AuditView>> {
  const set = withoutUndefined({
    result: oneOf(AUDIT_RESULTS, filters.result),
    action: filters.action ?? undefined,
    actor: filters.actor ?? undefined,
    target: filters.target ?? undefined,
  });
  return (query) => views.audit({ ...query, ...set });
}
