import type { ClaimAnswer, ExecutorEvents } from "../controller/offers.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import type { Task } from "../proto/gen/runner/v1/messages_pb.ts";
import type { Caller } from "./caller.ts";
import { REFUSALS } from "./own_offer.ts";
import type { OfferState, Registry } from "./registry.ts";

/** What {@link fetchTask} works with. */
export interface FetchTaskDeps {
  readonly registry: Registry;
  readonly events: Pick<ExecutorEvents, "claim" | "shown">;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The error for a caller that gets nothing. */
  refuse(caller: Caller, why: string): Error;
}

/** The official runner gives FetchTask 5 s. */
const HOLD_MS = 4_000;

/**
 * Holds the call until the caller's task is laid out and may be claimed, and hands it to that gate
 * alone; to the same one again until its first report. Null when the time is over. Throws what
 * `refuse` makes.
 */
export async function fetchTask(
  deps: FetchTaskDeps,
  caller: Caller,
  signal: AbortSignal,
): Promise<{ readonly task: Task; readonly logOffset: number } | null> {
  const { registry, events, refuse } = deps;
  using patience = deps.clock.timeout(HOLD_MS);
  const hold = AbortSignal.any([signal, patience.signal]);
  if (registry.resolve(caller.assignment, caller.spiffeId).kind === "unproven") {
    events.shown(caller.assignment, caller.gate, { kind: "asks" });
  }
  const found = await registry.waitOffer(caller.assignment, caller.spiffeId, hold);
  if (found.kind === "foreign") throw refuse(caller, REFUSALS.foreign);
  // Not known (yet): after a restart the controller may still have to find it.
  if (found.kind !== "found") return null;
  const { state } = found.offer;
  if (state.kind === "removed") throw refuse(caller, "the assignment has ended");
  if (state.kind === "claimed" && state.gate !== caller.gate) {
    throw refuse(caller, REFUSALS.otherGate);
  }
  if (state.kind === "claimed") return handed(state);
  const answer = await claim(events, caller, hold);
  if (answer.kind === "wait") return null;
  if (answer.kind === "refused") throw refuse(caller, answer.why);
  registry.claimed(caller.assignment, caller.gate, answer.logOffset);
  const after = registry.resolve(caller.assignment, caller.spiffeId);
  const now = after.kind === "found" ? after.offer.state : undefined;
  if (now?.kind !== "claimed" || now.gate !== caller.gate) {
    throw refuse(caller, "the assignment ended while it was being claimed");
  }
  deps.logger.info("task handed over", { assignment: caller.assignment, serial: caller.serial });
  return handed(now);
}

/** A claim that is not decided when the patience ends is asked for again. */
async function claim(
  events: Pick<ExecutorEvents, "claim">,
  caller: Caller,
  hold: AbortSignal,
): Promise<ClaimAnswer> {
  try {
    return await events.claim(caller.assignment, caller.gate, hold);
  } catch (error) {
    if (hold.aborted) return { kind: "wait" };
    throw error;
  }
}

/** Nothing once the runner has reported: then it surely has it. */
function handed({ task, logOffset }: OfferState & { readonly kind: "claimed" }) {
  return task === null ? null : { task, logOffset };
}
