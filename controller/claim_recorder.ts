import type { Clock } from "../lib/clock.ts";
import { TaskStateSchema } from "../proto/gen/runner/v1/messages_pb.ts";
import { create } from "../proto/runtime.ts";
import { type Entry, takeTurn } from "./entry.ts";
import { type Gitea, GiteaError } from "./gitea.ts";
import type { Ledger } from "./ledger.ts";
import type { ExecutorName } from "./model/ids.ts";
import type { ClaimAnswer } from "./offers.ts";
import type { RecordWriter } from "./record_writer.ts";
import { fromWireResult, isGone } from "./settle.ts";

/** What {@link createClaimRecorder} works with. */
export interface ClaimRecorderDeps {
  readonly clock: Clock;
  readonly gitea: Gitea;
  readonly ledger: Ledger;
  readonly writer: RecordWriter;
  /** Ends the heartbeats of a waiting task; resolves when none is under way. */
  stopWaiting(entry: Entry): Promise<void>;
  /** The backend's word that no executor could run the job any more; false when it does not answer. */
  isGone(entry: Entry, signal: AbortSignal): Promise<boolean>;
  guard(): void;
}

/** To whoever comes second. */
export const REFUSED: ClaimAnswer = {
  kind: "refused",
  why: "another gate has claimed this job",
};

/**
 * Makes the function that records a claim. It goes through in this order, or not at all: waiting
 * heartbeats stopped and awaited, Gitea asked whether the task still runs, the log's ack read, the
 * claim recorded by compare-and-set, the state moved on; then the task may be answered. Whoever comes
 * second finds `claimedBy`. Rejects when Gitea or the record is out of reach, and on abort.
 */
export function createClaimRecorder(
  deps: ClaimRecorderDeps,
): (entry: Entry, gate: string, signal: AbortSignal) => Promise<ClaimAnswer> {
  const { clock, ledger, writer, gitea } = deps;

  const ended = (entry: Entry, detail: string) =>
    ledger.dispatch(entry.info.id, { kind: "cancelled", detail });

  /** Gitea's view of the task: its log position, or null when the task has ended there. */
  const lookAtGitea = async (entry: Entry, signal: AbortSignal): Promise<bigint | null> => {
    const taskId = BigInt(entry.info.taskId);
    try {
      const [beat, log] = await Promise.all([
        gitea.updateTask({ state: create(TaskStateSchema, { id: taskId }) }, { signal }),
        gitea.updateLog({ taskId, index: 0n, rows: [], noMore: false }, { signal }),
      ]);
      const result = fromWireResult(beat.state?.result ?? 0);
      if (result === null) return log.ackIndex;
      ended(entry, `Gitea says the job has ended: ${result}`);
    } catch (error) {
      if (!(error instanceof GiteaError) || !(isGone(error) || error.code === "log_sealed")) {
        throw error;
      }
      ended(entry, `Gitea does not know the job any more: ${error.message}`);
    }
    return null;
  };

  const follow = (entry: Entry, executor: ExecutorName) => {
    const { id } = entry.info;
    ledger.dispatch(id, { kind: "claim_recorded", executor });
    if (entry.executor === null) ledger.dispatch(id, { kind: "executor_gone" });
    else if (entry.executor.ended !== null) ledger.dispatch(id, { kind: "executor_ended" });
  };

  /** Nothing is made or deleted for this assignment while its claim is being recorded. */
  return async (entry: Entry, gate: string, signal: AbortSignal): Promise<ClaimAnswer> => {
    const release = await takeTurn(entry);
    try {
      await deps.stopWaiting(entry);
      const ack = await lookAtGitea(entry, signal);
      if (ack === null) return { kind: "refused", why: "the job has ended at Gitea" };
      // Once recorded the job is this executor's: one that died just now must not take it along.
      if (await deps.isGone(entry, signal)) {
        ledger.dispatch(entry.info.id, { kind: "look_again" });
        return { kind: "wait" };
      }
      const { state } = entry;
      if (state.kind !== "ready") return { kind: "wait" };
      deps.guard();
      const claim = { executor: state.executor, gate, at: clock.now() };
      const { claimedBy, logOffset } = await writer.change(
        entry,
        (r) => r.claimedBy !== null ? r : { ...r, claimedBy: claim, logOffset: Number(ack) },
        signal,
      );
      // The record decides, also when it holds an earlier claim whose writing seemed to fail.
      if (claimedBy !== null) follow(entry, claimedBy.executor);
      if (claimedBy?.gate !== gate) return REFUSED;
      return entry.state.kind === "claimed"
        ? { kind: "granted", logOffset }
        : { kind: "refused", why: "the job ended while it was being handed over" };
    } finally {
      release();
    }
  };
}
