import type { JournalEntry } from "../../controller/journal.ts";
import { infoOf } from "./ledger_world.ts";

/** A journal of the assignment with number 7: these events, 10 ms from each to the next. */
export function journalOf(
  events: readonly JournalEntry["event"][],
  from = 1_000,
): JournalEntry[] {
  return events.map((event, i) => ({
    at: from + i * 10,
    event,
    component: "worker",
    backend: "pod",
    assignment: infoOf(7).id,
    executor: null,
    phase: null,
    retryDelayMs: 0,
    detail: null,
  }));
}
