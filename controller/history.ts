import type { Logger } from "../lib/logger.ts";
import type { Journal, JournalEntry } from "./journal.ts";
import type { JournalEvent } from "./model/state.ts";
import type { Recorder } from "./recorder.ts";

/** Events that are about the executor rather than the assignment. */
const EXECUTOR_EVENTS: ReadonlySet<JournalEvent> = new Set([
  "executor_absent",
  "executor_created",
  "executor_found",
  "identity_target_pending",
  "identity_bound",
]);

/** Events that are errors for the person on call. */
const ERRORS: ReadonlySet<JournalEvent> = new Set([
  "invalid assignment",
  "conflicting assignment",
  "unreadable",
  "backend_retry",
  "claim_timeout",
]);

/** The {@link Journal} that passes each entry to the log, the metrics and the events stream. */
export function createHistory(deps: {
  readonly logger: Logger;
  readonly recorder: Recorder;
  /** Takes the entry for the events stream; never blocks. */
  append(entry: JournalEntry): void;
}): Journal {
  return {
    write(entry) {
      const fields = {
        component: "worker",
        event: entry.event,
        backend: entry.backend,
        assignment: entry.assignment,
        executor: entry.executor ?? "",
        phase: entry.phase ?? "",
        retry_delay: entry.retryDelayMs * 1_000_000,
      };
      if (EXECUTOR_EVENTS.has(entry.event)) deps.logger.info("executor transition", fields);
      else deps.logger.info("assignment transition", fields);
      if (ERRORS.has(entry.event)) {
        const error = entry.detail ?? entry.event;
        deps.logger.error("assignment processing error", { ...fields, error });
      }
      deps.recorder.transition(entry.backend, entry.event);
      deps.append(entry);
    },
  };
}
