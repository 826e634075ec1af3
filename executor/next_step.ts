import type { Step } from "./drain.ts";
import type { Sent } from "./report_sender.ts";
import type { RowPhase, RowQueue } from "./row_queue.ts";
import type { StateQueue } from "./state_queue.ts";

/**
 * The call that is due now; undefined when there is none. States go up in their place among the rows,
 * many bytes of outputs before the seal, the seal with the final state, that last of all.
 * `isHolding`: the runner's last row waits for its final state.
 */
export function nextStep(rows: RowQueue, states: StateQueue, isHolding: boolean): Step | undefined {
  /** Who takes the next state may not have the seal, so that goes up again first. */
  const outcome = async <T>(sending: Promise<Sent<T>>): Promise<Sent<T>> => {
    const sent = await sending;
    if (sent.kind !== "accepted") rows.repeatSeal();
    return sent;
  };
  if (states.due(rows.received)) {
    return async (signal) => more(await outcome(states.sendNext(signal)));
  }
  const hasFinal = states.final !== undefined;
  const bulky = hasFinal && !rows.sealed && states.isBulky;
  const phase: RowPhase = { holdLast: bulky || isHolding, seal: hasFinal && !bulky };
  if (rows.due(phase)) return async (signal) => more(await rows.send(phase, signal));
  if (!hasFinal) return undefined;
  return bulky
    ? async (signal) => more(await outcome(states.sendOutputs(signal)))
    : (signal) => outcome(states.sendFinal(signal));
}

function more(sent: Sent<void>): Sent<"more"> {
  return sent.kind === "accepted" ? { kind: "accepted", value: "more" } : sent;
}
