import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { type Entry, takeTurn } from "./entry.ts";
import type { Ledger } from "./ledger.ts";
import type { BackendName } from "./model/ids.ts";
import type { RecordWriter } from "./record_writer.ts";
import type { Worker } from "./worker.ts";

/**
 * Ends every executor of this process before a clean stop of the embedded profile: running jobs are
 * reported as cancelled, those not yet claimed stay in the queue for the next start. Resolves when
 * all are gone, or when `signal` aborts; what is left then is found by the next start.
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

  const release = async (entry: Entry) => {
    entry.attempt?.controller.abort(new DOMException("Stopped", "AbortError"));
    const endTurn = await takeTurn(entry);
    try {
      while (await deps.worker(entry.info.backend).remove(entry, signal) === "leaving") {
        await clock.sleep(POLL_MS, signal);
      }
      // Gone by our own hand: that is no failure of the executor.
      if (entry.record !== null) {
        await deps.writer.change(entry, (r) => ({ ...r, uid: null }), signal);
      }
      entry.message?.nak(0);
      entry.message = null;
    } finally {
      endTurn();
    }
  };

  await deps.closeClaims();
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
        ends.push(
          release(entry).catch((error) => {
            logger.warn("executor not ended", { assignment: entry.info.id, error });
          }),
        );
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
  while (!signal.aborted && [...ledger.entries()].some(isEnding)) {
    await clock.sleep(POLL_MS, signal).catch(() => {});
  }
}

const POLL_MS = 50;

function isEnding(entry: Entry): boolean {
  return entry.state.kind === "settling" || entry.state.kind === "terminal";
}
