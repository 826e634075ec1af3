import type { StoredEntry } from "../journal.ts";
import type { AssignmentId } from "../model/ids.ts";
import { AWAITING_CLAIM } from "../model/decision.ts";
import type { Reason, Result } from "../model/reason.ts";
import type { JournalEvent, StateName } from "../model/state.ts";
import { phasesOf, type PhaseStatistics } from "./phases.ts";
import { eventViews, iso, type JournalledView, phaseViews } from "./view_of.ts";
import type { AssignmentDetailView } from "./views.ts";

/**
 * An assignment that memory has forgotten, or that another process works on, as its events tell of
 * it; undefined when there are none. What events do not hold (identity; in older ones the repository, too) is empty.
 */
export function journalView(
  id: AssignmentId,
  journal: readonly StoredEntry[],
  statistics: PhaseStatistics,
): JournalledView | undefined {
  const [first] = journal;
  const last = journal.at(-1);
  if (first === undefined || last === undefined) return undefined;
  const subject = journal.findLast((e) => e.subject !== undefined)?.subject;
  const state = journal.flatMap(({ event }) => STATES[event] ?? []).at(-1) ?? "stored";
  return {
    id,
    taskId: id.slice("gitea-task-".length),
    backend: first.backend,
    state,
    reason: reasonOf(state, last),
    result: resultOf(journal.find((e) => e.event === "terminal")?.detail ?? null),
    repository: subject?.repository ?? "",
    owner: subject?.repository.split("/", 1)[0] ?? "",
    job: subject?.job ?? "",
    ref: subject?.ref ?? null,
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

/** Whoever works on it has said why it waits with the last event, or knows no more than the state says. */
function reasonOf(state: StateName, last: StoredEntry): AssignmentDetailView["reason"] {
  const waiting = WAITING[state];
  if (waiting === undefined) return null;
  return { code: waiting.code, detail: last.detail ?? waiting.detail, since: iso(last.at) };
}

const WAITING: Readonly<Partial<Record<StateName, Pick<Reason, "code" | "detail">>>> = {
  stored: { code: "awaiting_slot", detail: "it waits for its turn and a free slot" },
  parked: { code: "parked", detail: "it failed before it could start, and is tried again" },
  admitted: { code: "executor_starting", detail: "its executor is being made" },
  starting: { code: "executor_starting", detail: "its executor is starting" },
  ready: AWAITING_CLAIM,
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
