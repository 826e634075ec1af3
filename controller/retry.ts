import type { Ledger } from "./ledger.ts";
import type { AssignmentId } from "./model/ids.ts";
import type { AssignmentQueue } from "./queue.ts";
import type { RecordWriter } from "./record_writer.ts";

/** What became of a retry. */
export type RetryOutcome =
  | { readonly kind: "retried" }
  /** No such assignment. */
  | { readonly kind: "unknown" }
  /** It is not parked (any more): there is nothing to retry. */
  | { readonly kind: "not_parked" };

/**
 * Makes what an operator's *Retry* does to a parked assignment.
 *
 * Its message was given back to JetStream with a delay. Nothing shortens that: only the delivery itself
 * could be answered a second time, and after a restart nobody has it. So the message is stored once
 * more as `<id>:<sequence of the old one>`, at the end of the queue, and the old one is removed. Killed
 * in between, both are there: whichever comes second is acknowledged as a leftover. The same retry
 * repeated stores nothing twice.
 *
 * Rejects with `QueueError` when the store is away; then the message comes by itself, as it would have.
 */
export function createRetry(deps: {
  readonly ledger: Ledger;
  readonly queue: Pick<AssignmentQueue, "list" | "publish" | "remove">;
  readonly writer: RecordWriter;
  /** Throws when this process may not act any more. */
  guard(): void;
}): (id: AssignmentId, signal: AbortSignal) => Promise<RetryOutcome> {
  const { ledger, queue } = deps;
  return async (id, signal) => {
    const entry = ledger.get(id);
    if (entry === undefined) return { kind: "unknown" };
    if (entry.state.kind !== "parked" || entry.sequence === null) return { kind: "not_parked" };
    deps.guard();
    const old = entry.sequence;
    const page = { fromSequence: old, limit: 1 };
    const [message] = await queue.list(entry.info.backend, page, { signal });
    if (message?.sequence !== old || message.id !== id) return { kind: "not_parked" };
    if (entry.record !== null) {
      await deps.writer.change(entry, (record) => ({ ...record, parkedUntil: null }), signal);
    }
    if (!isParkedAt(old)) return { kind: "not_parked" };
    deps.guard();
    // Before it is stored: a delivery that finds it parked would be put off again.
    ledger.dispatch(id, { kind: "unparked" });
    entry.nextTryAt = null;
    const { backend, data, headers } = message;
    const { sequence } = await queue.publish({ id, backend, data, headers, again: old }, {
      signal,
    });
    // It may have been delivered already, and the old one with it.
    if (entry.sequence === old) entry.sequence = sequence;
    ledger.touch(entry);
    await queue.remove(old, { signal });
    return { kind: "retried" };

    function isParkedAt(sequence: number): boolean {
      return entry?.state.kind === "parked" && entry.sequence === sequence;
    }
  };
}
