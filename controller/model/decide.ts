import type { Effect, Event, JournalEvent, Presence, State } from "./state.ts";
import type { ReasonCode, Result } from "./reason.ts";
import { isBeforeClaim, stateName } from "./state.ts";

/** Delays that {@link decide} uses, in milliseconds. */
export interface Delays {
  /** Pool full: the message comes again after this. */
  readonly capacityWaitMs: number;
  /** Backend error. */
  readonly backendRetryMs: number;
  /** Backend not ready yet. */
  readonly notReadyMs: number;
  /** Nothing claimed in time: look again after this. */
  readonly claimRetryMs: number;
  /** A parked or unreadable message is tried again after this. */
  readonly parkMs: number;
  /** Failed executors before the claim that park the assignment. */
  readonly maxFailures: number;
}

/** In production; tests have shorter ones. */
export const DEFAULT_DELAYS: Delays = {
  capacityWaitMs: 2_000,
  backendRetryMs: 15_000,
  notReadyMs: 2_000,
  claimRetryMs: 2_000,
  parkMs: 300_000,
  maxFailures: 5,
};

/** Why an assignment waits whose executor has been made, unless its backend knows better. */
export const AWAITING_CLAIM = {
  code: "awaiting_claim",
  detail: "the executor starts and will ask for its job",
} as const;

/** Why the assignment waits now; `null` when it waits for nothing. */
export type Waiting = { readonly code: ReasonCode; readonly detail: string } | null;

/** Outcome of one move. `waiting` is absent when the reason does not change. */
export interface Decision {
  readonly state: State;
  readonly effects: readonly Effect[];
  readonly waiting?: Waiting;
}

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
      return state.kind === "admitted"
        ? { state: { kind: "starting", executor: event.executor }, effects: [] }
        : same(state);
    case "not_ready":
      return inTheMaking(state)
        ? {
          state,
          effects: [
            journal("backend_pending", delays.notReadyMs, event.detail),
            { kind: "accept", afterMs: delays.notReadyMs },
          ],
          waiting: { code: event.code, detail: event.detail },
        }
        : same(state);
    case "ready":
      return state.kind === "admitted" || state.kind === "starting"
        ? {
          state: { kind: "ready", executor: event.executor },
          effects: [journal("backend_ready"), { kind: "await_claim" }],
          waiting: AWAITING_CLAIM,
        }
        : same(state);
    case "look_again":
      return lookAgain(state);
    case "backend_failed":
      return backendFailed(state, event, delays);
    case "executor_failed":
      return executorFailed(state, event, now, delays);
    case "claim_recorded":
      return inTheMaking(state) || state.kind === "ready"
        ? {
          state: {
            kind: "claimed",
            executor: event.executor,
            presence: "alive",
            ack: "waiting",
            final: null,
          },
          effects: [journal("runner_claimed")],
          waiting: null,
        }
        : same(state);
    case "claim_timed_out":
      return state.kind === "ready"
        ? {
          state: { kind: "starting", executor: state.executor },
          effects: [
            journal("claim_timeout", delays.claimRetryMs),
            { kind: "accept", afterMs: delays.claimRetryMs },
          ],
          waiting: {
            code: "claim_timeout",
            detail: "the executor did not ask for its job in time",
          },
        }
        : same(state);
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
        ? settle(state, "cancelled", { code: "cancelled", detail: event.detail }, "cancelled")
        : same(state);
    case "stopped":
      return state.kind === "claimed" || state.kind === "running"
        ? settle(state, "cancelled", { code: "cancelled", detail: event.detail }, "cancelled")
        : same(state);
    case "gave_up":
      return isBeforeClaim(state) ? settle(state, "failure", event, null) : same(state);
    case "lost":
      return state.kind === "claimed" || state.kind === "running"
        ? settle(state, "failure", event, "lost")
        : same(state);
    case "unparked":
      return state.kind === "parked"
        ? { state: { kind: "stored" }, effects: [], waiting: AWAITING_SLOT }
        : same(state);
    case "record_deleted":
      return state.kind === "terminal" && done(state)
        ? {
          state: { kind: "cleaned", result: state.result },
          effects: [journal("cleaned")],
        }
        : same(state);
    default:
      return event satisfies never;
  }
}

/** Longest wait before another executor is made for one that failed. */
const MAX_BACKOFF_MS = 60_000;
const AWAITING_SLOT: Waiting = { code: "awaiting_slot", detail: "every slot of the pool is taken" };

function same(state: State): Decision {
  return { state, effects: [] };
}

function journal(event: JournalEvent, retryDelayMs = 0, detail: string | null = null): Effect {
  return { kind: "journal", event, retryDelayMs, detail };
}

function inTheMaking(state: State): state is State & { kind: "admitted" | "starting" } {
  return state.kind === "admitted" || state.kind === "starting";
}

function delivered(
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
      const reason = { code: "invalid", detail: event.content.detail } as const;
      return settle(state, "failure", reason, "conflicting assignment", "invalid");
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
      const name = event.content.kind === "invalid"
        ? "invalid assignment"
        : "conflicting assignment";
      const reason = { code: "invalid", detail: event.content.detail } as const;
      const next = settle({ kind: "stored" }, "failure", reason, null, "invalid");
      return { ...next, effects: [received, journal(name, 0, reason.detail), ...next.effects] };
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

/** In the making: another round. Ready: it will not claim any more. Later the presence decides. */
function lookAgain(state: State): Decision {
  const effects: Effect[] = [{ kind: "accept", afterMs: 0 }];
  if (state.kind === "ready") {
    return { state: { kind: "starting", executor: state.executor }, effects };
  }
  return inTheMaking(state) ? { state, effects } : same(state);
}

function backendFailed(
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

function executorFailed(
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

/** Start telling Gitea the end ourselves. */
function settle(
  state: State,
  result: Result,
  reason: { readonly code: ReasonCode; readonly detail: string },
  entry: JournalEvent | null,
  shown = stateName(state),
): Decision {
  const { code, detail } = reason;
  const next: State = {
    kind: "settling",
    shown,
    executor: "executor" in state ? state.executor : null,
    presence: presenceOf(state),
    message: state.kind === "running" ? "gone" : "in_hand",
    result,
    reason: { code, detail },
  };
  const effects: Effect[] = [{ kind: "withdraw" }, { kind: "settle", result, code, detail }];
  if (entry !== null) effects.unshift(journal(entry, 0, detail));
  return { state: next, effects, waiting: { code, detail } };
}

function presenceOf(state: State): Presence {
  switch (state.kind) {
    case "stored":
    case "parked":
    case "cleaned":
      return "none";
    // An accept may be under way: until it is known to be gone, an executor counts as there.
    case "admitted":
    case "starting":
    case "ready":
      return "alive";
    case "claimed":
    case "running":
    case "settling":
    case "terminal":
      return state.presence;
    default:
      return state satisfies never;
  }
}

function settled(state: State, stored: Result | undefined): Decision {
  if (state.kind !== "settling") return same(state);
  const result = stored ?? state.result;
  const terminal: State = {
    kind: "terminal",
    result,
    executor: state.executor,
    presence: state.presence,
    // We delete the executor ourselves, at once: there is nothing to mark for later.
    marker: "moot",
    message: state.message,
  };
  const effects: Effect[] = [journal("terminal", 0, result)];
  if (state.message === "in_hand") {
    effects.push(
      state.shown === "invalid"
        ? { kind: "terminate", reason: state.reason.detail }
        : { kind: "ack" },
    );
  }
  if (state.presence !== "gone" && state.presence !== "none") {
    effects.push({ kind: "delete_executor" });
  }
  return finishIfDone(terminal, effects);
}

function finalAccepted(state: State, result: Result): Decision {
  switch (state.kind) {
    case "claimed":
      // The journal tells the story in order: the end waits for the ack.
      return {
        state: { ...state, final: state.final ?? result, ack: "requested" },
        effects: state.ack === "requested" ? [] : [{ kind: "ack" }],
      };
    case "running": {
      const { executor, presence } = state;
      const gone = presence === "gone";
      return finishIfDone(
        {
          kind: "terminal",
          result,
          executor,
          presence,
          marker: gone ? "moot" : "pending",
          message: "gone",
        },
        [journal("terminal", 0, result), ...(gone ? [] : [{ kind: "mark" } as const])],
      );
    }
    case "stored":
    case "parked":
    case "admitted":
    case "starting":
    case "ready":
    case "settling":
    case "terminal":
    case "cleaned":
      return same(state);
    default:
      return state satisfies never;
  }
}

function messageGone(state: State): Decision {
  if (state.kind === "claimed" && state.ack === "requested") {
    const { executor, presence, final } = state;
    const running: State = { kind: "running", executor, presence };
    const effects = [journal("acked"), journal("running")];
    if (final === null) return { state: running, effects };
    const next = finalAccepted(running, final);
    return { ...next, effects: [...effects, ...next.effects] };
  }
  if (state.kind === "settling") return { state: { ...state, message: "gone" }, effects: [] };
  if (state.kind === "terminal" && state.message === "in_hand") {
    return finishIfDone({ ...state, message: "gone" }, []);
  }
  return same(state);
}

/** How far an executor's end has come; it never goes back. */
const ENDING: Readonly<Record<Presence, number>> = {
  alive: 0,
  leaving: 1,
  ended: 2,
  gone: 3,
  none: 3,
};

function presenceChanged(state: State, presence: "leaving" | "ended" | "gone"): Decision {
  switch (state.kind) {
    case "claimed":
    case "running":
    case "settling":
      return ENDING[presence] > ENDING[state.presence]
        ? { state: { ...state, presence }, effects: [] }
        : same(state);
    case "terminal": {
      if (ENDING[presence] <= ENDING[state.presence]) return same(state);
      if (presence === "gone") {
        const marker = state.marker === "pending" ? "moot" : state.marker;
        return finishIfDone({ ...state, presence, marker }, []);
      }
      const over = presence === "ended" && state.marker === "held";
      return {
        state: { ...state, presence },
        effects: over ? [{ kind: "delete_executor" }] : [],
      };
    }
    case "stored":
    case "parked":
    case "admitted":
    case "starting":
    case "ready":
    case "cleaned":
      // Before the claim the next accept looks at what is there and decides.
      return same(state);
    default:
      return state satisfies never;
  }
}

function marked(state: State): Decision {
  if (state.kind !== "terminal" || state.marker !== "pending") return same(state);
  return {
    state: { ...state, marker: "held" },
    effects: [
      journal("marked"),
      ...(state.presence === "ended" ? [{ kind: "delete_executor" } as const] : []),
    ],
  };
}

function done(state: State & { kind: "terminal" }): boolean {
  return state.message === "gone" && (state.presence === "gone" || state.presence === "none");
}

function finishIfDone(state: State & { kind: "terminal" }, effects: Effect[]): Decision {
  if (done(state)) effects.push({ kind: "finish" });
  return { state, effects };
}
