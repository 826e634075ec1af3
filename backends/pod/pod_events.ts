import type { Executor } from "../../controller/backend.ts";
import type { Journal, JournalEntry } from "../../controller/journal.ts";
import type { AssignmentId } from "../../controller/model/ids.ts";
import type { JournalEvent } from "../../controller/model/state.ts";
import { onAbort } from "../../lib/abortable.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/logger.ts";
import { oneLine } from "../../lib/one_line.ts";
import type { ExecutorCluster, PodEvent } from "./cluster.ts";

/** Kubernetes Events on executors for what happens to their assignments. */
export interface PodEvents extends Journal {
  /** Sends what was written until the signal aborts; what is not sent by then is dropped. */
  run(signal: AbortSignal): Promise<void>;
}

type Who = Pick<Executor, "name" | "uid">;

/** What `kubectl describe` shows beside the kubelet's own events; not every round of a retry. */
const SHOWN: Readonly<
  Partial<Record<JournalEvent, Pick<PodEvent, "type" | "reason"> & { readonly text: string }>>
> = {
  executor_created: { type: "Normal", reason: "ExecutorMade", text: "made for" },
  identity_bound: { type: "Normal", reason: "IdentityBound", text: "has the identity of" },
  claim_timeout: { type: "Warning", reason: "ClaimTimeout", text: "did not ask in time for" },
  runner_claimed: { type: "Normal", reason: "JobClaimed", text: "was handed" },
  running: { type: "Normal", reason: "JobRunning", text: "reports progress of" },
  backend_retry: { type: "Warning", reason: "ExecutorFailed", text: "failed before it had" },
  parked: { type: "Warning", reason: "Parked", text: "failed once too often for" },
  cancelled: { type: "Normal", reason: "JobCancelled", text: "is not needed any more for" },
  lost: { type: "Warning", reason: "ExecutorLost", text: "was lost with" },
  terminal: { type: "Normal", reason: "JobEnded", text: "has reported the end of" },
};

const MAX_QUEUE = 256;
const MAX_REMEMBERED = 2_000;
const PAUSE_MS = 5_000;
/** The API server refuses a longer message. */
const MAX_MESSAGE = 1_000;

/**
 * Makes {@link PodEvents}. Best effort: each kind of event once an executor, a queue that drops what is
 * too much, no second try. Wire `write` behind the journal, and `run` while this process leads.
 */
export function createPodEvents(deps: {
  readonly cluster: Pick<ExecutorCluster, "emitPodEvent">;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The executor of an assignment as the ledger has it; null when it has none. */
  executorOf(id: AssignmentId): Who | null;
  /** Throws when this process may not act any more. */
  guard(): void;
}): PodEvents {
  const { cluster, clock } = deps;
  const queue: { readonly entry: JournalEntry; readonly who: Who | null }[] = [];
  const told = new Map<string, Set<string>>();
  let wake = () => {};
  let dropped = 0;
  let failing = false;

  /** True once for each kind of event of an executor; the oldest executors are forgotten. */
  const isFirst = (uid: string, reason: string): boolean => {
    const reasons = told.get(uid) ?? new Set();
    if (reasons.has(reason)) return false;
    told.set(uid, reasons.add(reason));
    for (const oldest of told.size > MAX_REMEMBERED ? told.keys() : []) {
      told.delete(oldest);
      break;
    }
    return true;
  };

  const send = async ({ entry, who }: (typeof queue)[number], signal: AbortSignal) => {
    const shown = SHOWN[entry.event];
    // The ledger knows a new executor only after its making was written.
    const executor = who ?? deps.executorOf(entry.assignment);
    if (shown === undefined || executor === null) return;
    if (!isFirst(executor.uid, shown.reason)) return;
    const { type, reason, text } = shown;
    const detail = entry.detail === null ? "" : `: ${entry.detail}`;
    const message = oneLine(`${text} ${entry.assignment}${detail}`, MAX_MESSAGE);
    try {
      deps.guard();
      await cluster.emitPodEvent(executor, { type, reason, message }, { signal });
      failing = false;
    } catch (error) {
      signal.throwIfAborted();
      if (!failing) deps.logger.warn("events of executors cannot be written", { error });
      failing = true;
      await clock.sleep(PAUSE_MS, signal);
    }
  };

  return {
    write(entry) {
      if (entry.backend !== "pod" || SHOWN[entry.event] === undefined) return;
      if (queue.length >= MAX_QUEUE) {
        dropped++;
        return;
      }
      queue.push({ entry, who: deps.executorOf(entry.assignment) });
      wake();
    },
    async run(signal) {
      using _waking = onAbort(signal, () => wake());
      try {
        while (!signal.aborted) {
          const next = queue.shift();
          if (next !== undefined) await send(next, signal);
          else {
            if (dropped > 0) deps.logger.warn("events of executors were dropped", { dropped });
            dropped = 0;
            await new Promise<void>((resolve) => wake = resolve);
          }
        }
      } catch (error) {
        if (!signal.aborted) throw error;
      } finally {
        queue.length = 0;
      }
    },
  };
}
