import type { Clock } from "../../lib/clock.ts";
import type { ReadEvents } from "./history_pages.ts";
import type { StoredEntry } from "../journal.ts";
import { journalView } from "./journal_view.ts";
import type { AssignmentId } from "../model/ids.ts";
import type { StateName } from "../model/state.ts";
import { pageByPlace } from "./paging.ts";
import type { PhaseStatistics } from "./phases.ts";
import { iso } from "./view_of.ts";
import type { AssignmentView, Views } from "./views.ts";

/** The newest entries; an assignment that has had no event for longer is not seen. */
const LOOK_BACK = 2_000;
const FRESH_MS = 2_000;
const ENDED: readonly StateName[] = ["cleaned", "invalid"];

/**
 * What a process that does not lead can show of assignments: what the newest entries of the events
 * stream tell, and how old the newest one is. Everything else is as in `base`. Lists read the stream
 * at most every two seconds; while it cannot be read they show what was read last.
 */
export function createStandbyViews(
  base: Views,
  deps: {
    readonly readEvents: ReadEvents;
    readonly statistics: PhaseStatistics;
    readonly clock: Clock;
  },
): Views {
  const { clock, statistics } = deps;
  let known: readonly AssignmentView[] = [];
  let newestAt: number | null = null;
  let readAt = -Infinity;
  let reading: Promise<void> | null = null;

  const read = async () => {
    try {
      const entries = await deps.readEvents({ limit: LOOK_BACK });
      newestAt = entries[0]?.at ?? null;
      known = assignmentsOf(entries, statistics);
    } catch {
      // The source of the events says why they cannot be read.
    } finally {
      readAt = clock.monotonic();
      reading = null;
    }
  };
  const refresh = async () => {
    if (clock.monotonic() - readAt >= FRESH_MS) await (reading ??= read());
  };

  return {
    ...base,
    status: () => ({ ...base.status(), eventsAt: newestAt === null ? null : iso(newestAt) }),
    async assignments(query) {
      await refresh();
      const states = query.state === undefined ? query.states : [query.state];
      const repository = query.repository?.toLowerCase();
      const wanted = known.filter((view) =>
        (states === undefined || states.includes(view.state)) &&
        (query.backend === undefined || view.backend === query.backend) &&
        (repository === undefined || view.repository.toLowerCase() === repository)
      );
      const newestFirst = states?.every((state) => ENDED.includes(state)) ?? false;
      return pageByPlace(newestFirst ? wanted.toReversed() : wanted, query);
    },
  };
}

/** Assignments of entries that come newest first; those are oldest first. */
function assignmentsOf(
  entries: readonly StoredEntry[],
  statistics: PhaseStatistics,
): readonly AssignmentView[] {
  const journals = new Map<AssignmentId, StoredEntry[]>();
  for (const entry of entries.toReversed()) {
    const journal = journals.get(entry.assignment);
    if (journal === undefined) journals.set(entry.assignment, [entry]);
    else journal.push(entry);
  }
  return [...journals].flatMap(([id, journal]) => {
    const view = journalView(id, journal, statistics);
    if (view === undefined) return [];
    const { events: _events, phases: _phases, lastLines: _lines, ...rest } = view;
    return [rest];
  });
}
