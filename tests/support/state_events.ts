import type { ExecutorName } from "../../controller/model/ids.ts";
import type { Event } from "../../controller/model/state.ts";

/** When the lives of the tests begin, milliseconds since the epoch. */
export const NOW = 1_000_000;
/** Name of the executor in {@link events}. */
export const X = "ci-00-1" as ExecutorName;
const readable = { kind: "readable" } as const;
const why = { code: "executor_failed", detail: "it broke" } as const;

/** One event of every kind that matters, by a short name. */
export const events: Record<string, Event> = {
  delivered: { kind: "delivered", content: readable, slot: "free" },
  deliveredFull: { kind: "delivered", content: readable, slot: "none" },
  invalid: { kind: "delivered", content: { kind: "invalid", detail: "bad" }, slot: "free" },
  conflicting: { kind: "delivered", content: { kind: "conflicting", detail: "two" }, slot: "free" },
  unreadable: { kind: "delivered", content: { kind: "unreadable", detail: "v3" }, slot: "free" },
  seen: { kind: "executor_seen", executor: X },
  notReady: { kind: "not_ready", code: "identity_pending", detail: "soon" },
  ready: { kind: "ready", executor: X },
  lookAgain: { kind: "look_again" },
  backendFailed: { kind: "backend_failed", ...why, executor: "none" },
  backendDoubt: { kind: "backend_failed", ...why, executor: "possible" },
  executorFailed: { kind: "executor_failed", ...why, failures: 1 },
  executorFailed5: { kind: "executor_failed", ...why, failures: 5 },
  claim: { kind: "claim_recorded", executor: X },
  claimTimeout: { kind: "claim_timed_out" },
  held: { kind: "held" },
  messageGone: { kind: "message_gone" },
  final: { kind: "final_accepted", result: "success" },
  settled: { kind: "settled" },
  leaving: { kind: "executor_leaving" },
  ended: { kind: "executor_ended" },
  gone: { kind: "executor_gone" },
  marked: { kind: "marked" },
  cancelled: { kind: "cancelled", detail: "by a user" },
  lost: { kind: "lost", ...why },
  gaveUp: { kind: "gave_up", code: "max_wait", detail: "2 h" },
  unparked: { kind: "unparked" },
  deleted: { kind: "record_deleted" },
};
