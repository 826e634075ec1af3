import type { Clock } from "../lib/clock.ts";
import type { Backend } from "./backend.ts";
import type { Deed } from "./effects.ts";
import type { Entry } from "./entry.ts";
import type { Ledger } from "./ledger.ts";
import type { LifecycleTimes } from "./lifecycle.ts";
import type { Presence } from "./model/state.ts";
import { silenceOf } from "./silence.ts";

/** What {@link createTimeRules} works with. */
export interface TimeRulesDeps {
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly backend: Pick<Backend, "name" | "untoldEnds">;
  readonly times: LifecycleTimes;
  /** A task that waits longer than this, for whatever reason, is failed at Gitea. */
  readonly maxWaitMs: number;
  /** When the facade began to listen, monotonic milliseconds; null while it does not. */
  facadeSince(): number | null;
  run(entry: Entry, effect: Deed): void;
  /** Called each tick for a job in an executor that lives. */
  inquire(entry: Entry): void;
}

/** What follows from time alone: call it each tick. Looks at every assignment of one backend. */
export function createTimeRules(deps: TimeRulesDeps): () => void {
  const { ledger, clock, times, backend, maxWaitMs } = deps;
  const inState = (...kinds: readonly Entry["state"]["kind"][]) =>
    kinds.flatMap((kind) => [...ledger.inState(backend.name, kind)]);

  /** Claimed: lost by silence, or told to stop and deaf. */
  const watchRunning = (facadeSince: number) => {
    const now = clock.monotonic();
    for (const entry of inState("claimed", "running")) {
      const { state } = entry;
      if (!("presence" in state)) continue;
      deps.inquire(entry);
      const limitMs = hasEnded(state.presence)
        ? times.silenceMs
        : backend.untoldEnds?.silenceMs ?? Infinity;
      if (silenceOf(entry, { now, facadeSince }) >= limitMs) {
        const detail = whyLost(entry, backend);
        ledger.dispatch(entry.info.id, { kind: "lost", code: "executor_lost", detail });
      }
      const { toldToStop, lastReport } = entry;
      if (toldToStop !== null && now - Math.max(toldToStop, lastReport ?? 0) >= times.deafMs) {
        // It is told to Gitea from here, and the executor is deleted.
        const detail = whyStopped(times);
        ledger.dispatch(entry.info.id, { kind: "stopped", detail });
      }
    }
  };

  /** It keeps its slot until it is gone. Without the marker the deletion would be forgotten. */
  const deleteLingering = () => {
    const { leavingMs = Infinity } = backend.untoldEnds ?? {};
    for (const entry of inState("terminal")) {
      const { state } = entry;
      if (state.kind !== "terminal" || hasEnded(state.presence)) continue;
      const leaving = state.presence === "leaving";
      const limitMs = leaving ? Math.min(times.lingerMs, leavingMs) : times.lingerMs;
      const over = ledger.age(entry).inStateMs >= limitMs;
      if (over && state.marker !== "pending") deps.run(entry, { kind: "delete_executor" });
    }
  };

  const giveUpOverdue = () => {
    for (const entry of inState("stored", "parked", "admitted", "starting", "ready")) {
      if (ledger.age(entry).totalMs < maxWaitMs) continue;
      if (entry.claiming !== null) continue; // It is being handed over after all.
      const detail = whyGivenUp(entry, maxWaitMs);
      ledger.dispatch(entry.info.id, { kind: "gave_up", code: "max_wait", detail });
    }
  };

  return () => {
    const facadeSince = deps.facadeSince();
    if (facadeSince !== null) watchRunning(facadeSince);
    deleteLingering();
    giveUpOverdue();
  };
}

/** What the backend, the gate, or their silence tells of an executor that is lost; for the job's log. */
function whyLost(entry: Entry, { untoldEnds }: Pick<Backend, "untoldEnds">): string {
  const ended = entry.executor?.ended ?? null;
  const { deletion, terminating, state } = entry;
  if (deletion !== null && ended === null) {
    return `the executor vanished without a result: ${deletion}`;
  }
  // The gate knows that it was asked to end, the backend why: eviction, node shutdown.
  const asked = deletion ??
    (terminating === null ? null : `the executor was terminated: ${terminating}`);
  if (asked !== null) return ended === null ? asked : `${asked}; ${ended.detail}`;
  if (ended !== null) return `the executor ended without a result: ${ended.detail}`;
  if ("presence" in state && !hasEnded(state.presence)) {
    const waiting = entry.executor?.waiting ?? null;
    const why = waiting === null ? "" : ` (${waiting.detail})`;
    return `the executor has been silent for ${minutes(untoldEnds?.silenceMs)} minutes, ` +
      `and its backend does not tell of an end${why}`;
  }
  return "the executor vanished without a result";
}

function whyStopped({ deafMs }: LifecycleTimes): string {
  return `the job has ended at Gitea, and its runner has not reported for ${
    minutes(deafMs)
  } minutes`;
}

function whyGivenUp({ reason }: Entry, maxWaitMs: number): string {
  const why = reason === null ? "" : `; last reason: ${reason.detail}`;
  return `the job waited longer than ${minutes(maxWaitMs)} minutes${why}`;
}

function minutes(ms = NaN): number {
  return Math.round(ms / 60_000);
}

/** By the backend's word. */
function hasEnded(presence: Presence): boolean {
  return presence === "ended" || presence === "gone" || presence === "none";
}
