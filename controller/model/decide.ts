import {
  finalAccepted,
  marked,
  messageGone,
  presenceChanged,
  recordDeleted,
  settle,
  settled,
} from "./decide_ending.ts";
import {
  backendFailed,
  claimRecorded,
  claimTimedOut,
  delivered,
  executorFailed,
  executorSeen,
  lookAgain,
  notReady,
  ready,
} from "./decide_making.ts";
import { AWAITING_SLOT, type Decision, DEFAULT_DELAYS, same } from "./decision.ts";
import type { Event, State } from "./state.ts";
import { isBeforeClaim } from "./state.ts";

/**
 * The whole life of an assignment: from a state and an event to the next state, what to do, and why
 * it waits. Pure and total: an event that does not fit changes nothing, so that events may be
 * repeated, late or out of order.
 */
export function decide(state: State, event: Event, now: number, delays = DEFAULT_DELAYS): Decision {
  switch (event.kind) {
    case "delivered":
      return delivered(state, event, now, delays);
    case "executor_seen":
      return executorSeen(state, event);
    case "not_ready":
      return notReady(state, event, delays);
    case "ready":
      return ready(state, event);
    case "look_again":
      return lookAgain(state);
    case "backend_failed":
      return backendFailed(state, event, delays);
    case "executor_failed":
      return executorFailed(state, event, now, delays);
    case "claim_recorded":
      return claimRecorded(state, event);
    case "claim_timed_out":
      return claimTimedOut(state, delays);
    case "held":
      return state.kind === "claimed" && state.ack === "waiting"
        ? { state: { ...state, ack: "requested" }, effects: [{ kind: "ack" }] }
        : same(state);
    case "message_gone":
      return messageGone(state);
    case "final_accepted":
      return finalAccepted(state, event.result);
    case "settled":
      return settled(state, event.result);
    case "executor_leaving":
      return presenceChanged(state, "leaving");
    case "executor_ended":
      return presenceChanged(state, "ended");
    case "executor_gone":
      return presenceChanged(state, "gone");
    case "marked":
      return marked(state);
    case "cancelled":
      return isBeforeClaim(state)
        ? settle(state, { ...CANCELLED, detail: event.detail })
        : same(state);
    case "stopped":
      return isClaimed(state) ? settle(state, { ...CANCELLED, detail: event.detail }) : same(state);
    case "gave_up":
      return isBeforeClaim(state)
        ? settle(state, { ...event, result: "failure", entry: null })
        : same(state);
    case "lost":
      return isClaimed(state)
        ? settle(state, { ...event, result: "failure", entry: "lost" })
        : same(state);
    case "unparked":
      return state.kind === "parked"
        ? { state: { kind: "stored" }, effects: [], waiting: AWAITING_SLOT }
        : same(state);
    case "record_deleted":
      return recordDeleted(state);
    default:
      return event satisfies never;
  }
}

const CANCELLED = { result: "cancelled", code: "cancelled", entry: "cancelled" } as const;

function isClaimed(state: State): boolean {
  return state.kind === "claimed" || state.kind === "running";
}
