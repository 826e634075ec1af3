import { onAbort } from "../lib/abortable.ts";
import type { Clock } from "../lib/clock.ts";
import type { WaitingReason } from "./admission.ts";
import { createEntry, type Entry, shrink } from "./entry.ts";
import type { Journal, JournalEntry } from "./journal.ts";
import type { AssignmentInfo } from "./model/assignment_info.ts";
import { decide } from "./model/decide.ts";
import { AWAITING_CLAIM, type Delays } from "./model/decision.ts";
import type { AssignmentId, BackendName } from "./model/ids.ts";
import type { Effect, Event, State } from "./model/state.ts";
import type { Pool } from "./pool.ts";

/** Called after each change; must not throw. */
export type LedgerListener = (entry: Entry) => void;

/**
 * All live assignments, and the last ended ones. Every move goes through {@link Ledger.dispatch}:
 * decide, apply, journal, then hand the effects to `run`. Dispatch is synchronous, so that two events
 * of one assignment never interleave.
 */
export interface Ledger {
  get(id: AssignmentId): Entry | undefined;
  /** Live and recently ended entries, oldest first. */
  entries(): Iterable<Entry>;
  /** Those of a backend in one state: kept at hand, so that nobody has to search. */
  inState(backend: BackendName, kind: State["kind"]): ReadonlySet<Entry>;
  /**
   * Adds an entry in a state that is not reached by an event: stored after the publish, or recovered;
   * with the reason why it waits, so that nobody sees it without one.
   */
  add(
    info: AssignmentInfo,
    state: State,
    at: number,
    waiting?: WaitingReason | null,
  ): Entry;
  /**
   * How long an entry exists, and how long it is in the state it is in, in milliseconds of the monotonic
   * clock. What lies before it was added is told by the wall clock of that moment.
   */
  age(entry: Entry): { readonly totalMs: number; readonly inStateMs: number };
  /** Lets an event happen to an assignment; unknown ids are ignored. */
  dispatch(id: AssignmentId, event: Event): void;
  /** Adds to the assignment's history and passes it on. */
  write(entry: JournalEntry): void;
  /** Says why one waits whose executor is made or ready: in its backend's words, if it does not run yet. */
  explain(entry: Entry): void;
  /** Says that something else than the state of an entry has changed. */
  touch(entry: Entry): void;
  /** Calls back after every change, until the signal aborts. */
  subscribe(listener: LedgerListener, signal: AbortSignal): void;
}

/** Makes a {@link Ledger}; it keeps the last `keepEnded` ended assignments. */
export function createLedger(deps: {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly pools: Readonly<Record<BackendName, Pool>>;
  readonly delays: Delays;
  /** Runs one effect; its outcome comes back through `dispatch`. Must not throw. */
  run(entry: Entry, effect: Exclude<Effect, { kind: "journal" }>): void;
  readonly keepEnded?: number;
}): Ledger {
  const { clock, pools } = deps;
  const keepEnded = deps.keepEnded ?? KEEP_ENDED;
  const entries = new Map<AssignmentId, Entry>();
  const index = { pod: createIndex(), vm: createIndex() };
  /** Moments of the monotonic clock: a wall clock that is set must not end or keep a job. */
  const began = new WeakMap<Entry, { total: number; inState: number }>();
  /** In the order in which they ended. */
  const ended = new Set<Entry>();
  const listeners = new Set<LedgerListener>();

  const notify = (entry: Entry) => {
    for (const listener of listeners) listener(entry);
  };

  const apply = (entry: Entry, state: State) => {
    const now = clock.now();
    const before = entry.state;
    const { backend, id } = entry.info;
    entry.state = state;
    entry.updatedAt = now;
    if ("result" in state) entry.result = state.result;
    pools[backend].observe(id, state);
    if (state.kind === before.kind) return;
    entry.stateSince = now;
    const moments = began.get(entry);
    if (moments !== undefined) moments.inState = clock.monotonic();
    index[backend][before.kind].delete(entry);
    index[backend][state.kind].add(entry);
    entry.phase.abort(new DOMException(`Moved on to ${state.kind}`, "AbortError"));
    entry.phase = new AbortController();
    if (ENDS_MAKING.has(state.kind)) {
      entry.attempt?.controller.abort(new DOMException(`Moved on to ${state.kind}`, "AbortError"));
      entry.nextTryAt = null;
    }
  };

  const retire = (entry: Entry) => {
    shrink(entry);
    ended.add(entry);
    const [oldest] = ended.size > keepEnded ? ended : [];
    if (oldest !== undefined) forget(oldest);
  };

  const forget = (entry: Entry) => {
    entries.delete(entry.info.id);
    index[entry.info.backend][entry.state.kind].delete(entry);
    ended.delete(entry);
  };

  const ledger: Ledger = {
    get: (id) => entries.get(id),
    entries: () => entries.values(),
    inState: (backend, kind) => index[backend][kind],
    add(info, state, at, waiting = null) {
      const replaced = entries.get(info.id);
      if (replaced !== undefined) forget(replaced);
      const entry = createEntry(info, state, at, clock.now());
      const inState = clock.monotonic();
      began.set(entry, { total: inState - Math.max(0, clock.now() - at), inState });
      setReason(entry, waiting, clock.now());
      entries.set(info.id, entry);
      index[info.backend][state.kind].add(entry);
      apply(entry, state);
      notify(entry);
      return entry;
    },
    age(entry) {
      const now = clock.monotonic();
      const { total, inState } = began.get(entry) ?? { total: now, inState: now };
      return { totalMs: now - total, inStateMs: now - inState };
    },
    dispatch(id, event) {
      const entry = entries.get(id);
      if (entry === undefined) return;
      const now = clock.now();
      const live = entry.state.kind !== "cleaned";
      const decision = decide(entry.state, event, now, deps.delays);
      apply(entry, decision.state);
      const { waiting } = decision;
      if (waiting !== undefined && !isMereTry(entry, event, waiting)) {
        setReason(entry, waiting, now);
      }
      for (const effect of decision.effects) {
        if (effect.kind === "journal") {
          ledger.write({
            at: now,
            event: effect.event,
            component: "worker",
            backend: entry.info.backend,
            assignment: id,
            executor: null,
            phase: null,
            retryDelayMs: effect.retryDelayMs,
            detail: effect.detail,
          });
        } else deps.run(entry, effect);
      }
      if (live && isCleaned(entry)) retire(entry);
      notify(entry);
    },
    write(item) {
      const entry = entries.get(item.assignment);
      if (entry !== undefined) {
        entry.journal.push(item);
        // A job that waits for days must not fill the memory with its retries.
        if (entry.journal.length > MAX_JOURNAL) entry.journal.splice(1, 1);
      }
      deps.journal.write(item);
    },
    explain(entry) {
      const { kind } = entry.state;
      const waiting = entry.executor?.waiting ?? null;
      // A create may take a minute, and what it makes is there and says why.
      const isMade = (kind === "admitted" || kind === "starting") && waiting !== null;
      if (kind !== "ready" && !isMade) return;
      setReason(entry, waiting ?? AWAITING_CLAIM, clock.now());
      ledger.touch(entry);
    },
    touch(entry) {
      entry.updatedAt = clock.now();
      notify(entry);
    },
    subscribe(listener, signal) {
      if (signal.aborted) return;
      listeners.add(listener);
      onAbort(signal, () => listeners.delete(listener));
    },
  };
  return ledger;
}

function isCleaned(entry: Entry): boolean {
  return entry.state.kind === "cleaned";
}

const MAX_JOURNAL = 500;
/** Of about 3.5 KiB each. History, in the events stream, has those that are forgotten. */
const KEEP_ENDED = 250;
/** States in which no executor is being made; the round under way is ended. */
const ENDS_MAKING: ReadonlySet<State["kind"]> = new Set([
  "stored",
  "parked",
  "claimed",
  "settling",
]);

function createIndex(): Readonly<Record<State["kind"], Set<Entry>>> {
  return {
    stored: new Set(),
    parked: new Set(),
    admitted: new Set(),
    starting: new Set(),
    ready: new Set(),
    claimed: new Set(),
    running: new Set(),
    settling: new Set(),
    terminal: new Set(),
    cleaned: new Set(),
  };
}

/** What kept it from an executor is why it waits until there is one: that it is tried again is no news. */
function isMereTry({ reason }: Entry, event: Event, waiting: WaitingReason | null): boolean {
  return event.kind === "delivered" && waiting?.code === "executor_starting" &&
    (reason?.code === "backend_unavailable" || reason?.code === "quota");
}

function setReason(
  entry: Entry,
  waiting: WaitingReason | null,
  now: number,
): void {
  if (waiting === null) {
    entry.reason = null;
    return;
  }
  const since = entry.reason?.code === waiting.code ? entry.reason.since : now;
  entry.reason = { ...waiting, since };
}
