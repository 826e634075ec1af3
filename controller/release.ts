import type { Deed } from "./effects.ts";
import type { Entry } from "./entry.ts";
import type { Ledger } from "./ledger.ts";
import type { AssignmentId } from "./model/ids.ts";
import { isBeforeClaim } from "./model/state.ts";
import type { Offers } from "./offers.ts";
import type { RecordWriter } from "./record_writer.ts";

/**
 * What operators may do to end an assignment. Every method may be repeated, e.g. after a restart; one
 * that has ended, or that nobody knows, stays as it is. `why` is for the job's author: it goes into the
 * job's log, and must name who wanted it.
 */
export interface Release {
  /** Before the claim: ended as cancelled at once. After it: its runner is told to end it. */
  cancel(id: AssignmentId, why: string): void;
  /** Reported as cancelled from here, its executor deleted: for one whose runner did not listen. */
  stop(id: AssignmentId, why: string): void;
  /** Failed at Gitea, its executor deleted; the slot comes back when that is gone. */
  force(id: AssignmentId, why: string): void;
  /**
   * The same, but the slot comes back at once. The record remembers it until the executor is seen to be
   * gone. Rejects with `QueueError` when the record cannot be written: then nothing has happened.
   */
  forget(id: AssignmentId, why: string, signal: AbortSignal): Promise<void>;
}

/** Makes {@link Release}. */
export function createRelease(deps: {
  readonly ledger: Ledger;
  readonly offers: Pick<Offers, "cancel">;
  readonly writer: RecordWriter;
  readonly clock: { now(): number };
  run(entry: Entry, effect: Deed): void;
  /** Throws when this process may not act any more. */
  guard(): void;
}): Release {
  const { ledger } = deps;

  const force = (id: AssignmentId, why: string) => {
    deps.guard();
    const entry = ledger.get(id);
    if (entry === undefined) return;
    const { state } = entry;
    if (isBeforeClaim(state)) {
      ledger.dispatch(id, { kind: "gave_up", code: "cancelled", detail: why });
    } else if (state.kind === "claimed" || state.kind === "running") {
      ledger.dispatch(id, { kind: "lost", code: "cancelled", detail: why });
    } else if (state.kind === "terminal" && state.presence !== "gone") {
      // Gitea knows its end: only what is left of it is in the way.
      deps.run(entry, { kind: "delete_executor" });
    }
  };

  return {
    cancel(id, why) {
      deps.guard();
      const entry = ledger.get(id);
      if (entry === undefined) return;
      if (isBeforeClaim(entry.state)) ledger.dispatch(id, { kind: "cancelled", detail: why });
      else deps.offers.cancel(id, why);
    },
    stop(id, why) {
      deps.guard();
      ledger.dispatch(id, { kind: "stopped", detail: why });
    },
    force,
    async forget(id, why, signal) {
      deps.guard();
      const entry = ledger.get(id);
      if (entry === undefined) return;
      // One that was never worked on has neither record nor executor.
      if (entry.record !== null) {
        const released = deps.clock.now();
        await deps.writer.change(
          entry,
          (record) => record.released !== null ? record : { ...record, released },
          signal,
        );
      }
      force(id, why);
      ledger.dispatch(id, { kind: "executor_leaving" });
    },
  };
}
