import type { AssignmentInfo } from "./model/assignment_info.ts";
import type { AssignmentId, BackendName, ExecutorName } from "./model/ids.ts";
import type { JournalEvent } from "./model/state.ts";

/** One entry of an assignment's history. Never holds a payload, credential, SPIFFE ID or environment. */
export interface JournalEntry {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly event: JournalEvent;
  readonly component: "scheduler" | "worker" | "lifecycle";
  readonly backend: BackendName;
  readonly assignment: AssignmentId;
  /** Only on worker (executor) events; null where there is none. */
  readonly executor: ExecutorName | null;
  readonly phase: string | null;
  /** 0 when none. */
  readonly retryDelayMs: number;
  readonly detail: string | null;
  /** Which job it is about, in stored entries: for those who read them when memory has forgotten it. */
  readonly subject?: Pick<AssignmentInfo, "repository" | "job" | "ref" | "runId" | "giteaUrl">;
}

/**
 * Where entries go: the log, the metrics, the events stream, the pages. Never throws and never
 * blocks: a full or broken sink drops entries and counts them.
 */
export interface Journal {
  /** Takes one entry. */
  write(entry: JournalEntry): void;
}

/**
 * The whole history of an assignment that an earlier process began: what is stored, then what this one has
 * written itself, which reaches the stream a little later.
 */
export function wholeJournal(
  stored: readonly JournalEntry[],
  own: readonly JournalEntry[],
): readonly JournalEntry[] {
  const [first] = own;
  return [...first === undefined ? stored : stored.filter(({ at }) => at < first.at), ...own];
}

/** An entry with its place in the events stream. */
export interface StoredEntry extends JournalEntry {
  /** Stream sequence in `CI_RUNNER_EVENTS`. */
  readonly seq: number;
}
