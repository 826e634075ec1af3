import type { ReasonCode } from "./reason.ts";
import type { Effect, JournalEvent, State } from "./state.ts";

/** Delays that `decide()` uses, in milliseconds. */
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

/** Why it waits in a full pool. */
export const AWAITING_SLOT: Waiting = {
  code: "awaiting_slot",
  detail: "every slot of the pool is taken",
};

/** Nothing moves. */
export function same(state: State): Decision {
  return { state, effects: [] };
}

/** An entry for the assignment's history. */
export function journal(
  event: JournalEvent,
  retryDelayMs = 0,
  detail: string | null = null,
): Effect {
  return { kind: "journal", event, retryDelayMs, detail };
}

/** True while an executor is being made or found. */
export function inTheMaking(state: State): state is State & { kind: "admitted" | "starting" } {
  return state.kind === "admitted" || state.kind === "starting";
}
