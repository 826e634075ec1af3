import type { Executor } from "./backend.ts";
import type { TaskRecord } from "./model/record.ts";
import type { Presence, State } from "./model/state.ts";

/**
 * The state of an assignment that an earlier process worked on, from what it left behind. The record
 * decides about claim and end; `stored` tells whether the message is still in the stream: then nobody
 * knows that the runner holds the task.
 */
export function restoredState(
  left: {
    readonly record: TaskRecord | null;
    readonly executor: Executor | null;
    readonly stored: boolean;
    readonly now: number;
  },
): State {
  const { record, executor, stored, now } = left;
  const presence: Presence = executor === null
    ? "gone"
    : executor.ended === null
    ? "alive"
    : "ended";
  const name = executor?.name ?? record?.claimedBy?.executor ?? null;
  if (executor?.terminal || record?.terminal != null) {
    return {
      kind: "terminal",
      result: record?.terminal?.result ?? "failure",
      executor: name,
      presence: record?.released != null && presence === "alive" ? "leaving" : presence,
      marker: executor === null ? "moot" : executor.terminal ? "held" : "pending",
      message: stored ? "in_hand" : "gone",
    };
  }
  if (record !== null && record.released !== null) {
    return {
      kind: "settling",
      shown: record.claimedBy === null ? "starting" : "running",
      executor: name,
      // Whatever the backend says: an operator gave its slot to others.
      presence: presence === "alive" ? "leaving" : presence,
      message: stored ? "in_hand" : "gone",
      result: "failure",
      reason: RELEASED,
    };
  }
  if (record?.claimedBy != null) {
    const claimant = record.claimedBy.executor;
    return stored
      ? { kind: "claimed", executor: claimant, presence, ack: "waiting", final: null }
      : { kind: "running", executor: claimant, presence };
  }
  if (executor !== null) return { kind: "starting", executor: executor.name };
  const until = record?.parkedUntil ?? null;
  return until !== null && until > now ? { kind: "parked", until } : { kind: "stored" };
}

/** Its end may have been told before; Gitea keeps the first one. */
const RELEASED = {
  code: "cancelled",
  detail: "an operator gave this job up before the controller was restarted",
} as const;
