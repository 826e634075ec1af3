import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/logger.ts";
import type { TaskGroup } from "../../lib/task_group.ts";
import type { Entry } from "../entry.ts";
import { type JournalEntry, wholeJournal } from "../journal.ts";
import type { Ledger } from "../ledger.ts";
import type { AssignmentId } from "../model/ids.ts";
import type { StepSnapshot } from "../model/record.ts";
import type { ExecutorEvents } from "../offers.ts";
import { momentsOf } from "../views/moments.ts";
import { assignmentSpans } from "./assignment_spans.ts";
import { createReportCollector, type ReportCollector, type ToldCall } from "./executor_reports.ts";
import type { SpanSink } from "./span.ts";
import { formatTraceparent, type TraceId, traceOf } from "./trace_context.ts";

/** One trace per assignment: noted on its way, sent when nothing is left of it. */
export interface Traces {
  /** Of its trace. */
  idOf(id: AssignmentId): TraceId;
  /** `traceparent` of what belongs to an assignment: its message, its executor. */
  parentOf(id: AssignmentId): string;
  /** From now on each of its assignments that has ended is sent, until the group's signal aborts. */
  follow(ledger: Ledger): void;
  /** Gitea has handed it out; it is not stored yet. */
  fetched(id: AssignmentId): void;
  /** An executor's call at the facade has been answered. */
  called(id: AssignmentId, call: ToldCall): void;
  /** The events of executors, with what traces need of them noted. */
  noting(events: ExecutorEvents): ExecutorEvents;
}

/** What is noted of one assignment beside its entry. */
interface Notes {
  readonly fetchedAt: number | null;
  readonly reports: ReportCollector;
  steps: readonly StepSnapshot[];
}

/** Tasks that were fetched and are not stored yet: as many as there are fetchers, and some more. */
const MAX_FETCHED = 1_000;
const MAX_HISTORY_MS = 10_000;

/** Makes {@link Traces}; before it follows a ledger nothing is noted. */
export function createTraces(deps: {
  /** The runner's uuid at Gitea. */
  readonly registration: string;
  readonly sink: SpanSink;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly tasks: TaskGroup;
  /** Stored events of an assignment that an earlier process began, oldest first. */
  history(id: AssignmentId, signal: AbortSignal): Promise<readonly JournalEntry[]>;
}): Traces {
  const { clock, tasks } = deps;
  let ledger: Ledger | null = null;
  const fetched = new Map<AssignmentId, number>();
  const notes = new WeakMap<Entry, Notes>();
  const sent = new WeakSet<Entry>();
  const contextOf = (id: AssignmentId) => traceOf(deps.registration, id);

  const notesOf = (entry: Entry): Notes => {
    const known = notes.get(entry);
    if (known !== undefined) return known;
    const { id } = entry.info;
    const made: Notes = {
      fetchedAt: fetched.get(id) ?? null,
      reports: createReportCollector(contextOf(id)),
      steps: [],
    };
    fetched.delete(id);
    notes.set(entry, made);
    return made;
  };

  const send = (entry: Entry, journal: readonly JournalEntry[]) => {
    const { fetchedAt, reports, steps } = notesOf(entry);
    const { info, result, reason, executor, record } = entry;
    const spans = assignmentSpans(contextOf(info.id), {
      info,
      fetchedAt,
      storedAt: entry.createdAt,
      result,
      reason,
      journal,
      moments: momentsOf(entry),
      steps: steps.length > 0 ? steps : record?.value.steps ?? [],
      executor,
      report: reports.report(),
    });
    for (const span of spans) deps.sink.record(span);
  };

  /** An earlier process has journalled its beginning; where that cannot be read, the end alone is sent. */
  const sendWhole = async (entry: Entry, signal: AbortSignal) => {
    using limit = clock.timeout(MAX_HISTORY_MS);
    const { id } = entry.info;
    try {
      const stored = await deps.history(id, AbortSignal.any([signal, limit.signal]));
      send(entry, wholeJournal(stored, entry.journal));
    } catch (error) {
      deps.logger.warn("trace without its beginning", { assignment: id, error });
      send(entry, entry.journal);
    }
  };

  const onChange = (entry: Entry) => {
    if (entry.state.kind !== "cleaned") {
      notesOf(entry);
      return;
    }
    if (sent.has(entry)) return;
    sent.add(entry);
    if (entry.restored) tasks.spawn("send trace", (signal) => sendWhole(entry, signal));
    else send(entry, entry.journal);
  };

  /** Notes something of an assignment that is known here. */
  const note = (id: AssignmentId, take: (notes: Notes, entry: Entry) => void) => {
    const entry = ledger?.get(id);
    if (entry !== undefined) take(notesOf(entry), entry);
  };

  return {
    idOf: (id) => contextOf(id).traceId,
    parentOf: (id) => formatTraceparent(contextOf(id)),
    follow(followed) {
      ledger = followed;
      followed.subscribe(onChange, tasks.signal);
    },
    fetched(id) {
      fetched.set(id, clock.now());
      // The oldest ones were never stored: too large for the server, or stored before.
      const [oldest] = fetched.keys();
      if (fetched.size > MAX_FETCHED && oldest !== undefined) fetched.delete(oldest);
    },
    called: (id, call) => note(id, ({ reports }) => reports.called(call)),
    noting: (events) => ({
      ...events,
      stepsForwarded(id, steps) {
        note(id, (notes) => notes.steps = steps);
        events.stepsForwarded(id, steps);
      },
      exited(id, exit) {
        const { code, phases = {} } = exit;
        note(id, ({ reports }, { createdAt }) => {
          reports.exited({ code, phases }, { now: clock.now(), earliest: createdAt });
        });
        events.exited(id, exit);
      },
    }),
  };
}
