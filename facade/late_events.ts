import type { ExecutorEvents } from "../controller/offers.ts";

/** The controller's half, joined after the facade was made: each of the two needs the other. */
export interface LateEvents extends ExecutorEvents {
  /** From now on everything goes to `events`. */
  bind(events: ExecutorEvents): void;
}

/**
 * Until it is bound a claim is answered `wait`, and reports are dropped: without a controller nothing
 * has been offered, so nobody can have anything to report.
 */
export function createLateEvents(): LateEvents {
  let target: ExecutorEvents | null = null;
  return {
    bind(events) {
      target = events;
    },
    claim: (id, gate, signal) =>
      target?.claim(id, gate, signal) ?? Promise.resolve({ kind: "wait" }),
    updated: (id) => target?.updated(id),
    rowsForwarded: (id) => target?.rowsForwarded?.(id),
    stepsForwarded: (id, steps) => target?.stepsForwarded(id, steps),
    endReported: async (id, end, signal) => await target?.endReported?.(id, end, signal),
    endedAtGitea: (id) => target?.endedAtGitea(id),
    finalAccepted: (id, result) => target?.finalAccepted(id, result),
    shown: (id, gate, shown) => target?.shown(id, gate, shown),
    heartbeat: (id, beat) => target?.heartbeat(id, beat),
    terminating: (id, why) => target?.terminating(id, why),
    whyDeleted: (id) => target?.whyDeleted?.(id) ?? null,
    exited: (id, exit) => target?.exited(id, exit),
  };
}
