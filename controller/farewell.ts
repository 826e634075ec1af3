import { abortable } from "../lib/abortable.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { type Entry, takeTurn } from "./entry.ts";
import type { Ledger } from "./ledger.ts";
import type { BackendName } from "./model/ids.ts";
import type { RecordWriter } from "./record_writer.ts";
import type { Worker } from "./worker.ts";

/**
 * Ends every executor of this process before a clean stop of the embedded profile: running jobs are
 * reported as cancelled, those not yet claimed stay in the queue for the next start. While Gitea does
 * not answer executors are ended all the same after two seconds; the next start reports their jobs.
 * Resolves when all are gone, or when `signal` aborts; what is left then is found by the next start.
 */
export async function endExecutors(deps: {
  readonly ledger: Ledger;
  readonly writer: RecordWriter;
  readonly clock: Clock;
  readonly logger: Logger;
  worker(backend: BackendName): Worker;
  /** Grants no claim any more; resolves when none is under way. */
  closeClaims(): Promise<void>;
  run(entry: Entry, effect: { readonly kind: "delete_executor" }): void;
}, signal: AbortSignal): Promise<void> {
  const { ledger, clock, logger } = deps;
  const enough = new AbortController();
  const stop = AbortSignal.any([signal, enough.signal]);

  const complain = (entry: Entry, error: unknown) => {
    if (!enough.signal.aborted) {
      logger.warn("executor not ended", { assignment: entry.info.id, error });
    }
  };

  const remove = async (entry: Entry) => {
    while (await deps.worker(entry.info.backend).remove(entry, stop) === "leaving") {
      await clock.sleep(POLL_MS, stop);
    }
  };

  const release = async (entry: Entry) => {
    entry.attempt?.controller.abort(new DOMException("Stopped", "AbortError"));
    // What is in its way may wait for a Gitea that does not answer.
    const endTurn = await takeTurn(entry, stop);
    try {
      await remove(entry);
      // Gone by our own hand: that is no failure of the executor.
      if (entry.record !== null) {
        await deps.writer.change(entry, (r) => ({ ...r, uid: null }), stop);
      }
      entry.message?.nak(0);
      entry.message = null;
    } finally {
      endTurn();
    }
  };

  /** The ends that Gitea and the records are told of. */
  const inOrder = async () => {
    await abortable(deps.closeClaims(), stop);
    const ends: Promise<void>[] = [];
    for (const entry of [...ledger.entries()]) {
      switch (entry.state.kind) {
        case "claimed":
        case "running":
          ledger.dispatch(entry.info.id, { kind: "stopped", detail: "the controller was stopped" });
          break;
        case "admitted":
        case "starting":
        case "ready":
          ends.push(release(entry).catch((error) => complain(entry, error)));
          break;
        case "terminal":
          // Gitea knows the end, so it need not be marked for later.
          deps.run(entry, { kind: "delete_executor" });
          break;
        case "stored":
        case "parked":
        case "settling":
        case "cleaned":
          break;
        default:
          entry.state satisfies never;
      }
    }
    await Promise.all(ends);
    while (!stop.aborted && [...ledger.entries()].some(isEnding)) {
      await clock.sleep(POLL_MS, stop).catch(() => {});
    }
  };

  const ended = inOrder().then(() => true, () => false);
  const patience = new AbortController();
  const late = clock.sleep(PATIENCE_MS, AbortSignal.any([stop, patience.signal])).catch(() => {});
  if (!await Promise.race([ended, late.then(() => false)])) {
    const left = [...ledger.entries()].filter(mayHaveExecutor);
    await Promise.all(left.map((entry) => remove(entry).catch((error) => complain(entry, error))));
  }
  patience.abort();
  enough.abort(new DOMException("Every executor is gone", "AbortError"));
  await Promise.all([ended, late]);
}

const POLL_MS = 50;
const PATIENCE_MS = 2_000;

function isEnding(entry: Entry): boolean {
  return entry.state.kind === "settling" || entry.state.kind === "terminal";
}

function mayHaveExecutor({ state: { kind } }: Entry): boolean {
  return kind !== "stored" && kind !== "parked" && kind !== "cleaned";
}
