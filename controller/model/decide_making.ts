import {
  AWAITING_CLAIM,
  AWAITING_SLOT,
  type Decision,
  type Delays,
  inTheMaking,
  journal,
  same,
} from "./decision.ts";
import { type OwnEnd, settle } from "./decide_ending.ts";
import type { Effect, Event, JournalEvent, State } from "./state.ts";

/** The first half of {@link ./decide.ts | decide()}: from the queue to an executor that has claimed its job. */

/** Longest wait before another executor is made for one that failed. */
const MAX_BACKOFF_MS = 60_000;
/** JetStream has delivered the message: admitted, given back, or never to run. */
export function delivered(
  state: State,
  event: Event & { kind: "delivered" },
  now: number,
  delays: Delays,
): Decision {
  switch (state.kind) {
    case "stored":
    case "parked":
      break;
    case "claimed":
      return { state, effects: state.ack === "requested" ? [{ kind: "ack" }] : [] };
    case "running":
    case "cleaned":
      return { state, effects: [{ kind: "ack" }] };
    case "terminal":
      return { state: { ...state, message: "in_hand" }, effects: [{ kind: "ack" }] };
    case "settling":
      return { state: { ...state, message: "in_hand" }, effects: [] };
    case "admitted":
    case "starting":
    case "ready": {
      if (event.content.kind !== "conflicting") return same(state);
      // Two tasks under one id: nobody can tell which is the true one, so neither runs.
      return settle(state, invalid(event.content.detail, "conflicting assignment"));
    }
    default:
      return state satisfies never;
  }
  // Further off than a parking lasts: the wall clock was set back meanwhile, and it is over.
  if (state.kind === "parked" && state.until > now && state.until - now <= delays.parkMs) {
    return { state, effects: [{ kind: "nak", delayMs: state.until - now }] };
  }
  const received = journal("received");
  switch (event.content.kind) {
    case "readable":
      return event.slot === "free"
        ? {
          state: { kind: "admitted" },
          effects: [received, journal("capacity_acquired"), { kind: "accept", afterMs: 0 }],
          waiting: { code: "executor_starting", detail: "an executor is being made" },
        }
        : {
          state: { kind: "stored" },
          effects: [
            received,
            journal("capacity_wait", delays.capacityWaitMs),
            { kind: "nak", delayMs: delays.capacityWaitMs },
          ],
          waiting: event.waits ?? AWAITING_SLOT,
        };
    case "invalid":
    case "conflicting": {
      const { kind, detail } = event.content;
      const next = settle({ kind: "stored" }, invalid(detail, `${kind} assignment`));
      return { ...next, effects: [received, ...next.effects] };
    }
    case "unreadable":
      return {
        state: { kind: "parked", until: now + delays.parkMs },
        effects: [
          received,
          journal("unreadable", delays.parkMs, event.content.detail),
          { kind: "nak", delayMs: delays.parkMs },
        ],
        waiting: { code: "unreadable", detail: event.content.detail },
      };
    default:
      return event.content satisfies never;
  }
}

/** It can never run. */
function invalid(detail: string, entry: JournalEvent): OwnEnd {
  return { result: "failure", code: "invalid", detail, entry, shown: "invalid" };
}

/** The worker has found or made the executor. */
export function executorSeen(
  state: State,
  { executor }: Event & { kind: "executor_seen" },
): Decision {
  return state.kind === "admitted"
    ? { state: { kind: "starting", executor }, effects: [] }
    : same(state);
}

/** Another round, a little later. */
export function notReady(
  state: State,
  { code, detail }: Event & { kind: "not_ready" },
  delays: Delays,
): Decision {
  if (!inTheMaking(state)) return same(state);
  const afterMs = delays.notReadyMs;
  return {
    state,
    effects: [journal("backend_pending", afterMs, detail), { kind: "accept", afterMs }],
    waiting: { code, detail },
  };
}

/** Its identity is bound: it may claim. */
export function ready(state: State, { executor }: Event & { kind: "ready" }): Decision {
  if (!inTheMaking(state)) return same(state);
  return {
    state: { kind: "ready", executor },
    effects: [journal("backend_ready"), { kind: "await_claim" }],
    waiting: AWAITING_CLAIM,
  };
}

/** In the making: another round. Ready: it will not claim any more. Later the presence decides. */
export function lookAgain(state: State): Decision {
  const effects: Effect[] = [{ kind: "accept", afterMs: 0 }];
  if (state.kind === "ready") {
    return { state: { kind: "starting", executor: state.executor }, effects };
  }
  return inTheMaking(state) ? { state, effects } : same(state);
}

/** The backend said no or nothing: tried again, with the slot if an executor may exist. */
export function backendFailed(
  state: State,
  event: Event & { kind: "backend_failed" },
  delays: Delays,
): Decision {
  if (!inTheMaking(state)) return same(state);
  const waiting = { code: event.code, detail: event.detail };
  const entry = journal("backend_retry", delays.backendRetryMs, event.detail);
  // The slot goes back only if no executor can exist: never an executor beyond capacity.
  return event.executor === "none"
    ? {
      state: { kind: "stored" },
      effects: [entry, { kind: "withdraw" }, { kind: "nak", delayMs: delays.backendRetryMs }],
      waiting,
    }
    : { state, effects: [entry, { kind: "accept", afterMs: delays.backendRetryMs }], waiting };
}

/** One ended before its claim: another is made, more and more slowly, until it is parked. */
export function executorFailed(
  state: State,
  event: Event & { kind: "executor_failed" },
  now: number,
  delays: Delays,
): Decision {
  if (!inTheMaking(state) && state.kind !== "ready") return same(state);
  if (event.failures >= delays.maxFailures) {
    const until = now + delays.parkMs;
    return {
      state: { kind: "parked", until },
      effects: [
        journal("parked", delays.parkMs, event.detail),
        { kind: "withdraw" },
        { kind: "delete_executor" },
        { kind: "remember_parked", until },
        { kind: "nak", delayMs: delays.parkMs },
      ],
      waiting: {
        code: "parked",
        detail: `${event.failures} executors failed; last: ${event.detail}`,
      },
    };
  }
  const afterMs = Math.min(delays.notReadyMs * 2 ** (event.failures - 1), MAX_BACKOFF_MS);
  return {
    state: { kind: "admitted" },
    effects: [journal("backend_retry", afterMs, event.detail), { kind: "accept", afterMs }],
    waiting: { code: event.code, detail: event.detail },
  };
}

/** The record says whose it is: the task is about to be answered. */
export function claimRecorded(
  state: State,
  { executor }: Event & { kind: "claim_recorded" },
): Decision {
  if (!inTheMaking(state) && state.kind !== "ready") return same(state);
  return {
    state: { kind: "claimed", executor, presence: "alive", ack: "waiting", final: null },
    effects: [journal("runner_claimed")],
    waiting: null,
  };
}

/** The executor did not ask for its job in time: it is looked at again. */
export function claimTimedOut(state: State, delays: Delays): Decision {
  if (state.kind !== "ready") return same(state);
  const afterMs = delays.claimRetryMs;
  return {
    state: { kind: "starting", executor: state.executor },
    effects: [journal("claim_timeout", afterMs), { kind: "accept", afterMs }],
    waiting: { code: "claim_timeout", detail: "the executor did not ask for its job in time" },
  };
}
