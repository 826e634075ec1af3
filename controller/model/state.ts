import type { ExecutorName } from "./ids.ts";
import type { ReasonCode, Result } from "./reason.ts";

/**
 * States of an assignment, the events that move it and the effects that a move asks for.
 *
 * ```
 *  stored --> admitted --> starting --> ready --> claimed --> running --> terminal --> cleaned
 *    |  ^         |           |           |          |           |           ^
 *    |  +- parked-+           |           |          |           |           |
 *    +------------------------+-----------+----------+-----------+-> settling+
 * ```
 * `settling` means: the controller itself is telling Gitea how the task ended (invalid, cancelled,
 * lost, waited too long). Moves are made by {@link ../model/decide.ts | decide()} alone.
 */

/**
 * What is known of the executor: none was made, it lives, its gate has said goodbye, the backend says
 * that it has ended, it is gone from the backend.
 */
export type Presence = "none" | "alive" | "leaving" | "ended" | "gone";

/** State names as the API shows them. */
export type StateName =
  | "stored"
  | "admitted"
  | "starting"
  | "ready"
  | "claimed"
  | "running"
  | "terminal"
  | "cleaned"
  | "parked"
  | "invalid";

/** One assignment's state. */
export type State =
  /** The sealed task is in JetStream; no slot is held. */
  | { readonly kind: "stored" }
  /** No slot; not tried before `until` (milliseconds since the epoch). */
  | { readonly kind: "parked"; readonly until: number }
  /** A slot is held; the backend is being asked for an executor. */
  | { readonly kind: "admitted" }
  /** The executor exists; its identity is not bound yet. */
  | { readonly kind: "starting"; readonly executor: ExecutorName }
  /** Identity bound; the executor may claim. */
  | { readonly kind: "ready"; readonly executor: ExecutorName }
  /**
   * The claim is recorded and the task handed over. `ack` tells whether the runner surely holds it
   * (then the message is being acknowledged); `final` keeps a final state that came before the ack.
   */
  | {
    readonly kind: "claimed";
    readonly executor: ExecutorName;
    readonly presence: Presence;
    readonly ack: "waiting" | "requested";
    readonly final: Result | null;
  }
  /** Message gone, runner at work. */
  | { readonly kind: "running"; readonly executor: ExecutorName; readonly presence: Presence }
  /** The controller is reporting `result` itself; `shown` is the state that users see meanwhile. */
  | {
    readonly kind: "settling";
    readonly shown: StateName;
    readonly executor: ExecutorName | null;
    readonly presence: Presence;
    readonly message: "in_hand" | "gone";
    readonly result: Result;
    readonly reason: { readonly code: ReasonCode; readonly detail: string };
  }
  /** Gitea has accepted the final state. */
  | {
    readonly kind: "terminal";
    readonly result: Result;
    readonly executor: ExecutorName | null;
    readonly presence: Presence;
    readonly marker: "pending" | "held" | "moot";
    readonly message: "in_hand" | "gone";
  }
  /** Message, executor and record are gone. */
  | { readonly kind: "cleaned"; readonly result: Result | null };

/** What the message turned out to be when it was opened. */
export type Content =
  | { readonly kind: "readable" }
  | { readonly kind: "invalid"; readonly detail: string }
  | { readonly kind: "conflicting"; readonly detail: string }
  | { readonly kind: "unreadable"; readonly detail: string };

/** Everything that can happen to an assignment. */
export type Event =
  /**
   * JetStream delivered the message; `slot` tells whether the pool has room for it, and `waits` why it
   * has none when it is not simply full.
   */
  | {
    readonly kind: "delivered";
    readonly content: Content;
    readonly slot: "free" | "none";
    readonly waits?: { readonly code: ReasonCode; readonly detail: string };
  }
  /** The worker found or made the executor. */
  | { readonly kind: "executor_seen"; readonly executor: ExecutorName }
  /** `accept` is not done yet. */
  | { readonly kind: "not_ready"; readonly code: ReasonCode; readonly detail: string }
  /** Identity bound. */
  | { readonly kind: "ready"; readonly executor: ExecutorName }
  /** The executor in the making has ended or vanished, says the backend: see what is there. */
  | { readonly kind: "look_again" }
  /** The backend refused or did not answer; `executor` says whether one may exist. */
  | {
    readonly kind: "backend_failed";
    readonly code: ReasonCode;
    readonly detail: string;
    readonly executor: "none" | "possible";
  }
  /** The executor ended before the claim, and is gone from the backend; `failures` counts this one too. */
  | {
    readonly kind: "executor_failed";
    readonly code: ReasonCode;
    readonly detail: string;
    readonly failures: number;
  }
  /** The claim stands in the record, which decides whatever we believed; the task is about to be answered. */
  | { readonly kind: "claim_recorded"; readonly executor: ExecutorName }
  | { readonly kind: "claim_timed_out" }
  /** The runner surely holds the task: its first Update*, or a heartbeat that says so. */
  | { readonly kind: "held" }
  /** JetStream confirmed that the message is gone. */
  | { readonly kind: "message_gone" }
  /** Gitea accepted the runner's final UpdateTask. */
  | { readonly kind: "final_accepted"; readonly result: Result }
  /**
   * Gitea accepted the final state that we sent ourselves (or says the task is not known any more).
   * `result` is what Gitea has stored, when that is another one: its first final state wins.
   */
  | { readonly kind: "settled"; readonly result?: Result }
  /** The gate is about to exit: the slot may be used again, and there is nothing left to stop. */
  | { readonly kind: "executor_leaving" }
  /** The backend says that the program has ended. */
  | { readonly kind: "executor_ended" }
  | { readonly kind: "executor_gone" }
  /** The backend holds the durable terminal marker. */
  | { readonly kind: "marked" }
  /** Gitea says the task was cancelled or ended, before the claim. */
  | { readonly kind: "cancelled"; readonly detail: string }
  /** Claimed, and its executor is proven lost. */
  | { readonly kind: "lost"; readonly code: ReasonCode; readonly detail: string }
  /** We end a claimed one ourselves: a clean stop of the embedded profile, an operator's release. */
  | { readonly kind: "stopped"; readonly detail: string }
  /** Gave up before the claim: waited too long, payload lost. */
  | { readonly kind: "gave_up"; readonly code: ReasonCode; readonly detail: string }
  /** An operator wants a parked assignment tried now, or the time to park is over. */
  | { readonly kind: "unparked" }
  | { readonly kind: "record_deleted" };

/** Names of the journal's entries; fixed words. */
export type JournalEvent =
  | "received"
  | "invalid assignment"
  | "conflicting assignment"
  | "unreadable"
  | "capacity_wait"
  | "capacity_acquired"
  | "executor_absent"
  | "executor_created"
  | "executor_found"
  | "identity_target_pending"
  | "identity_bound"
  | "backend_retry"
  | "backend_pending"
  | "backend_ready"
  | "claim_timeout"
  | "runner_claimed"
  | "acked"
  | "running"
  | "terminal"
  | "marked"
  | "cleaned"
  | "parked"
  | "cancelled"
  | "lost";

/** What a move asks the shell to do. Every effect may be repeated; its outcome comes back as an event. */
export type Effect =
  | {
    readonly kind: "journal";
    readonly event: JournalEvent;
    readonly retryDelayMs: number;
    readonly detail: string | null;
  }
  /** Ask the worker for the executor after `afterMs`. Outcome: executor_seen, not_ready, ready, backend_failed, executor_failed. */
  | { readonly kind: "accept"; readonly afterMs: number }
  /** Expect the claim within the claim timeout. Outcome: claim_recorded (by the facade) or claim_timed_out. */
  | { readonly kind: "await_claim" }
  /** DoubleAck. Outcome: message_gone. */
  | { readonly kind: "ack" }
  /** Terminate the message with a reason. Outcome: message_gone. */
  | { readonly kind: "terminate"; readonly reason: string }
  /** Give the message back; it is delivered again after the delay. */
  | { readonly kind: "nak"; readonly delayMs: number }
  /** Write into the record until when it is parked, so that a restart knows. */
  | { readonly kind: "remember_parked"; readonly until: number }
  /** Take the offer back from the facade. */
  | { readonly kind: "withdraw" }
  /** Tell Gitea the final state with a log row that says why. Outcome: settled. */
  | {
    readonly kind: "settle";
    readonly result: Result;
    readonly code: ReasonCode;
    readonly detail: string;
  }
  /** Write the backend's terminal marker. Outcome: marked. */
  | { readonly kind: "mark" }
  /** Delete executor and identity entry. Outcome: executor_gone. */
  | { readonly kind: "delete_executor" }
  /** Delete the record. Outcome: record_deleted. */
  | { readonly kind: "finish" };

/** The state that the API shows. */
export function stateName(state: State): StateName {
  return state.kind === "settling" ? state.shown : state.kind;
}

/** True as long as nobody was handed the job: executors may be made, and a cancel ends it at once. */
export function isBeforeClaim(state: State): boolean {
  switch (state.kind) {
    case "stored":
    case "parked":
    case "admitted":
    case "starting":
    case "ready":
      return true;
    case "claimed":
    case "running":
    case "settling":
    case "terminal":
    case "cleaned":
      return false;
    default:
      return state satisfies never;
  }
}

/** True while the assignment holds a slot of its pool. Slots are derived from this, never counted. */
export function holdsSlot(state: State): boolean {
  switch (state.kind) {
    case "admitted":
    case "starting":
    case "ready":
    case "claimed":
    case "running":
      return true;
    case "settling":
    case "terminal":
      return state.presence === "alive";
    case "stored":
    case "parked":
    case "cleaned":
      return false;
    default:
      return state satisfies never;
  }
}
