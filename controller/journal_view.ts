import type { StoredEntry } from "./journal.ts";
import type { AssignmentId } from "./model/ids.ts";
import type { Result } from "./model/reason.ts";
import type { JournalEvent, StateName } from "./model/state.ts";
import { phasesOf, type PhaseStatistics } from "./phases.ts";
import { eventViews, iso, phaseViews } from "./view_of.ts";
import type { AssignmentDetailView } from "./views.ts";

/**
 * An assignment that memory has forgotten, or that another process works on, as its events tell of
 * it; undefined when there are none. What events do not hold (identity; in older ones the repository, too) is empty.
 */
export function journalView(
  id: AssignmentId,
  journal: readonly StoredEntry[],
  statistics: PhaseStatistics,
): AssignmentDetailView | undefined {
  const [first] = journal;
  const last = journal.at(-1);
  if (first === undefined || last === undefined) return undefined;
  const subject = journal.findLast((e) => e.subject !== undefined)?.subject;
  const states = journal.flatMap(({ event }) => STATES[event] ?? []);
  return {
    id,
    taskId: id.slice("gitea-task-".length),
    backend: first.backend,
    state: states.at(-1) ?? "stored",
    reason: null,
    result: resultOf(journal.find((e) => e.event === "terminal")?.detail ?? null),
    repository: subject?.repository ?? "",
    owner: subject?.repository.split("/", 1)[0] ?? "",
    job: subject?.job ?? "",
    runId: subject?.runId ?? null,
    giteaUrl: subject?.giteaUrl ?? null,
    spiffeId: "",
    fork: false,
    position: null,
    streamSequence: null,
    deliveries: null,
    nextTryAt: null,
    failures: 0,
    executor: journal.findLast((e) => e.executor !== null)?.executor ?? null,
    createdAt: iso(first.at),
    updatedAt: iso(last.at),
    epoch: null,
    events: eventViews(journal),
    phases: phaseViews(phasesOf(journal, first.at), first, statistics),
    lastLines: [],
  };
}

/** The state that an assignment is in after an event; absent when the event does not tell. */
const STATES: Readonly<Partial<Record<JournalEvent, StateName>>> = {
  received: "stored",
  capacity_wait: "stored",
  capacity_acquired: "admitted",
  executor_created: "starting",
  executor_found: "starting",
  backend_ready: "ready",
  claim_timeout: "starting",
  runner_claimed: "claimed",
  running: "running",
  terminal: "terminal",
  cleaned: "cleaned",
  parked: "parked",
  unreadable: "parked",
  "invalid assignment": "invalid",
  "conflicting assignment": "invalid",
};

function resultOf(detail: string | null): Result | null {
  switch (detail) {
    case "success":
    case "failure":
    case "cancelled":
    case "skipped":
      return detail;
    default:
      return null;
  }
}
