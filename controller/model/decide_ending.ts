import { type Decision, journal, same } from "./decision.ts";
import type { ReasonCode, Result } from "./reason.ts";
import {
  type Effect,
  type JournalEvent,
  type Presence,
  type State,
  type StateName,
  stateName,
} from "./state.ts";

/** The second half of {@link ./decide.ts | decide()}: from a claim, or a job that will not run, to nothing left. */

/** An end that the controller itself tells Gitea. */
export interface OwnEnd {
  readonly result: Result;
  readonly code: ReasonCode;
  readonly detail: string;
  /** What the history says of it; null for nothing. */
  readonly entry: JournalEvent | null;
  /** What users see meanwhile; the state as it was by default. */
  readonly shown?: StateName;
}

/** Starts telling Gitea the end ourselves. */
export function settle(state: State, end: OwnEnd): Decision {
  const { result, code, detail, entry, shown = stateName(state) } = end;
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

/** Gitea has taken the end that we have told. */
export function settled(state: State, stored: Result | undefined): Decision {
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

/** Gitea has taken the runner's own end. */
export function finalAccepted(state: State, result: Result): Decision {
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

/** JetStream does not have the message any more. */
export function messageGone(state: State): Decision {
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

/** The executor has come nearer to its end. */
export function presenceChanged(state: State, presence: "leaving" | "ended" | "gone"): Decision {
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

/** The backend remembers that the job has ended. */
export function marked(state: State): Decision {
  if (state.kind !== "terminal" || state.marker !== "pending") return same(state);
  return {
    state: { ...state, marker: "held" },
    effects: [
      journal("marked"),
      ...(state.presence === "ended" ? [{ kind: "delete_executor" } as const] : []),
    ],
  };
}

/** Nothing is left of it but its history. */
export function recordDeleted(state: State): Decision {
  return state.kind === "terminal" && done(state)
    ? { state: { kind: "cleaned", result: state.result }, effects: [journal("cleaned")] }
    : same(state);
}

function done(state: State & { kind: "terminal" }): boolean {
  return state.message === "gone" && (state.presence === "gone" || state.presence === "none");
}

function finishIfDone(state: State & { kind: "terminal" }, effects: Effect[]): Decision {
  if (done(state)) effects.push({ kind: "finish" });
  return { state, effects };
}
