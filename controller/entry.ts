import type { Executor } from "./backend.ts";
import type { JournalEntry } from "./journal.ts";
import type { AssignmentInfo } from "./model/assignment_info.ts";
import type { Reason, Result } from "./model/reason.ts";
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
  message: StoredMessage | null;
  sequence: number | null;
  deliveries: number | null;
  nextTryAt: number | null;
  record: Versioned<TaskRecord> | null;
  executor: Executor | null;
  /** Wall clock, for people. */
  heartbeatAt: number | null;
  /** Monotonic clock, for the proof of loss. */
  lastSeen: number | null;
  terminating: string | null;
  recovered: Recovered | null;
  lastLines: readonly string[];
  readonly journal: JournalEntry[];
  /** Aborts the accept under way. */
  attempt: AbortController | null;
  /** Aborts when the state's kind changes. */
  phase: AbortController;
  /** Backend work of this assignment, one after the other. */
  work: Promise<void>;
  /** Record writes of this assignment, one after the other. */
  writes: Promise<unknown>;
  claiming: Promise<ClaimAnswer> | null;
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
    sequence: null,
    deliveries: null,
    nextTryAt: null,
    record: null,
    executor: null,
    heartbeatAt: null,
    lastSeen: null,
    terminating: null,
    recovered: null,
    lastLines: [],
    journal: [],
    attempt: null,
    phase: new AbortController(),
    work: Promise.resolve(),
    writes: Promise.resolve(),
    claiming: null,
  };
}
