import { abortable } from "../lib/abortable.ts";
import type { Executor } from "./backend.ts";
import type { JournalEntry } from "./journal.ts";
import type { Moments } from "./views/moments.ts";
import type { AssignmentInfo } from "./model/assignment_info.ts";
import type { Reason, ReasonCode, Result } from "./model/reason.ts";
import type { TaskRecord } from "./model/record.ts";
import type { State } from "./model/state.ts";
import type { ClaimAnswer } from "./offers.ts";
import type { StoredMessage } from "./queue.ts";
import type { Versioned } from "./records.ts";

/** What start-up found out about an executor that an earlier process had made. */
export interface Recovered {
  readonly at: number;
  readonly proof: "record" | "heartbeat" | "signature";
}

/** One round of asking the backend for an executor. */
export interface Attempt {
  readonly controller: AbortController;
  /** False while it waits for its time or its turn. */
  working: boolean;
  /** Something was seen meanwhile: look again afterwards. */
  again: boolean;
}

/** What is kept of a deleted record, for pages and for executors that turn up late. */
export interface Remains {
  readonly uid: string | null;
  readonly nonce: string;
  readonly failures: number;
  readonly epoch: number;
}

/** One live assignment in memory: a cache that start-up rebuilds. Only `controller/` writes to it. */
export interface Entry {
  info: AssignmentInfo;
  state: State;
  /** When `state.kind` last changed. */
  stateSince: number;
  readonly createdAt: number;
  updatedAt: number;
  reason: Reason | null;
  result: Result | null;
  /** In hand; null while it is in the queue only, or gone. */
  message: StoredMessage | null;
  /** More messages of the same id in hand, to be ended with the first. */
  others: readonly StoredMessage[];
  /** Stream sequence of the message, whether it is in hand or not. */
  sequence: number | null;
  deliveries: number | null;
  nextTryAt: number | null;
  record: Versioned<TaskRecord> | null;
  /** Of the record that was deleted. */
  remains: Remains | null;
  /** As last seen at the backend, and known to be ours. */
  executor: Executor | null;
  /** A create was asked for whose outcome is not known. */
  mayExist: boolean;
  /** How the executor ended that is being replaced. */
  ending: Ended | null;
  /** The executor has not asked for its job within the claim time-out. */
  overdue: boolean;
  /** How the executor ended before the claim that was the last one to do so. */
  failed: string | null;
  /** A deletion of the executor is under way. */
  deleting: boolean;
  /** Wall clock, for people. */
  heartbeatAt: number | null;
  /** Monotonic clock, for the proof of loss. */
  lastSeen: number | null;
  /** Monotonic clock: when its runner last reported to Gitea through us. */
  lastReport: number | null;
  /** Monotonic clock: when its runner was first told to stop, because the job has ended at Gitea. */
  toldToStop: number | null;
  /** What its gate has said. */
  terminating: string | null;
  /** Somebody else deletes its executor although that has the job: what is known of it. */
  deletion: string | null;
  /** Begun by an earlier process: the journal here is only its end. */
  restored: boolean;
  recovered: Recovered | null;
  /**
   * An executor is there whose record is lost: until its gate has shown whether it holds the job,
   * nothing is made for it, and nothing said of it at Gitea.
   */
  unproven: boolean;
  lastLines: readonly string[];
  readonly journal: JournalEntry[];
  /** What happened between its events. */
  readonly moments: Moments;
  /** The round under way, waiting or working. */
  attempt: Attempt | null;
  /** Aborts when the state's kind changes. */
  phase: AbortController;
  /** Work on the executor and its claim, one after the other: see {@link takeTurn}. */
  work: Promise<void>;
  /** Record writes of this assignment, one after the other. */
  writes: Promise<unknown>;
  claiming: Promise<ClaimAnswer> | null;
}

/** How an executor ended before the claim. */
export interface Ended {
  readonly code: ReasonCode;
  readonly detail: string;
  readonly lastLines: readonly string[];
}

/** An entry in the given state. */
export function createEntry(info: AssignmentInfo, state: State, at: number, now: number): Entry {
  return {
    info,
    state,
    stateSince: now,
    createdAt: at,
    updatedAt: now,
    reason: null,
    result: null,
    message: null,
    others: [],
    sequence: null,
    deliveries: null,
    nextTryAt: null,
    record: null,
    remains: null,
    executor: null,
    mayExist: false,
    ending: null,
    overdue: false,
    failed: null,
    deleting: false,
    heartbeatAt: null,
    lastSeen: null,
    lastReport: null,
    toldToStop: null,
    terminating: null,
    deletion: null,
    restored: false,
    recovered: null,
    unproven: false,
    lastLines: [],
    journal: [],
    moments: new Map(),
    attempt: null,
    phase: new AbortController(),
    work: Promise.resolve(),
    writes: Promise.resolve(),
    claiming: null,
  };
}

/**
 * Waits for all earlier work on this assignment's executor; resolves to what ends the turn. Every
 * turn must be ended, also after a failure, or the next one never begins. Rejects with the signal's
 * reason when that aborts first: then there is no turn to end.
 */
export async function takeTurn(entry: Entry, signal?: AbortSignal): Promise<() => void> {
  const before = entry.work;
  const { promise, resolve } = Promise.withResolvers<void>();
  entry.work = promise;
  try {
    await (signal === undefined ? before : abortable(before, signal));
  } catch (error) {
    // Whoever gives up while waiting must not let the next one in before those ahead have left.
    void before.then(resolve);
    throw error;
  }
  return resolve;
}

/** Drops what an ended assignment does not need any more; what pages show stays. */
export function shrink(entry: Entry): void {
  entry.message = null;
  entry.others = [];
  entry.ending = null;
  if (entry.executor !== null) {
    const metadata = { labels: {}, annotations: {} };
    entry.executor = { ...entry.executor, metadata, ended: null, waiting: null };
  }
  // The events stream has them all.
  if (entry.journal.length > KEEP_EVENTS) {
    entry.journal.splice(KEEP_EVENTS / 2, entry.journal.length - KEEP_EVENTS);
  }
}

const KEEP_EVENTS = 60;
