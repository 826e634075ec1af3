import type { Executor } from "../backend.ts";
import { whyEnding } from "../deletion.ts";
import type { Entry } from "../entry.ts";
import type { JournalEntry } from "../journal.ts";
import type { AssignmentInfo } from "../model/assignment_info.ts";
import { stateName } from "../model/state.ts";
import { divide, momentsOf } from "./moments.ts";
import { phasesOf, type PhaseSpan, type PhaseStatistics } from "./phases.ts";
import type { Stranger } from "../strangers.ts";
import type {
  AssignmentDetailView,
  AssignmentView,
  EventView,
  ExecutorView,
  PhaseView,
} from "./views.ts";

/** RFC 3339 in UTC. */
export function iso(ms: number): string {
  return new Date(ms).toISOString();
}

/** RFC 3339, or null for null. */
export function isoOrNull(ms: number | null): string | null {
  return ms === null ? null : iso(ms);
}

/** An assignment as lists show it. `position` is its place among those that wait for a slot. */
export function assignmentView(entry: Entry, position: number | null): AssignmentView {
  const { info, reason, record } = entry;
  return {
    id: info.id,
    taskId: info.taskId,
    backend: info.backend,
    state: stateName(entry.state),
    reason: reason === null ? null : { ...reason, since: iso(reason.since) },
    result: entry.result,
    repository: info.repository,
    owner: info.repository.split("/")[0] ?? "",
    job: info.job,
    ref: info.ref ?? null,
    runId: info.runId,
    giteaUrl: info.giteaUrl,
    spiffeId: info.identity.spiffeId,
    fork: info.identity.fork,
    position,
    streamSequence: entry.sequence,
    deliveries: entry.deliveries,
    nextTryAt: isoOrNull(entry.nextTryAt),
    failures: (record?.value ?? entry.remains)?.failures ?? 0,
    executor: entry.executor?.name ?? null,
    createdAt: iso(entry.createdAt),
    updatedAt: iso(entry.updatedAt),
    epoch: (record?.value ?? entry.remains)?.epoch ?? null,
  };
}

/** An assignment as this process, or its events, tell of it. */
export type JournalledView = Omit<AssignmentDetailView, "traceId">;

/** An assignment with its timeline, which may begin before this process. */
export function detailView(
  entry: Entry,
  journal: readonly JournalEntry[],
  position: number | null,
  statistics: PhaseStatistics,
): JournalledView {
  return {
    ...assignmentView(entry, position),
    events: eventViews(journal),
    phases: phaseViews(
      divide(phasesOf(journal, entry.createdAt), momentsOf(entry)),
      entry.info,
      statistics,
    ),
    lastLines: entry.lastLines,
  };
}

/** Events with the time to the next one. */
export function eventViews(
  journal: readonly (JournalEntry & { readonly seq?: number })[],
): EventView[] {
  return journal.map((entry, i) => {
    const next = journal[i + 1];
    return {
      seq: entry.seq ?? null,
      at: iso(entry.at),
      event: entry.event,
      component: entry.component,
      retryDelayMs: entry.retryDelayMs,
      durationMs: next === undefined ? null : next.at - entry.at,
      executor: entry.executor,
      phase: entry.phase,
      detail: entry.detail,
    };
  });
}

/** Phases beside what is usual for the backend. */
export function phaseViews(
  spans: readonly PhaseSpan[],
  info: Pick<AssignmentInfo, "backend">,
  statistics: PhaseStatistics,
): PhaseView[] {
  return spans.map((span) => {
    const usual = statistics.of(info.backend, span.name);
    return {
      name: span.name,
      startedAt: iso(span.startedAt),
      durationMs: span.endedAt === null ? null : span.endedAt - span.startedAt,
      p50Ms: usual.p50,
      p95Ms: usual.p95,
    };
  });
}

/** The executor of an assignment, or undefined while it has none. */
export function executorView(entry: Entry): ExecutorView | undefined {
  const { executor, state } = entry;
  if (executor === null || state.kind === "cleaned") return undefined;
  if ("presence" in state && state.presence === "gone") return undefined;
  return {
    ...common(executor),
    backend: entry.info.backend,
    assignmentId: entry.info.id,
    heartbeatAt: isoOrNull(entry.heartbeatAt),
    claimed: entry.record?.value.claimedBy != null,
    terminal: entry.state.kind === "terminal",
    ownership: "ours",
    why: whyEnding(entry),
    recovered: entry.recovered === null
      ? null
      : { at: iso(entry.recovered.at), proof: entry.recovered.proof },
  };
}

/** An executor without an assignment. */
export function strangerView(stranger: Stranger, backend: ExecutorView["backend"]): ExecutorView {
  return {
    ...common(stranger.executor),
    backend,
    assignmentId: null,
    heartbeatAt: null,
    claimed: false,
    terminal: stranger.executor.terminal,
    ownership: stranger.ownership === "foreign" ? "foreign" : "unknown",
    why: stranger.why,
    recovered: null,
  };
}

function common(executor: Executor) {
  return {
    name: executor.name,
    uid: executor.uid,
    phase: executor.phase,
    node: executor.node,
    createdAt: iso(executor.createdAt),
  };
}
