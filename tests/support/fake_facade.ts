import type { Gitea } from "../../controller/gitea.ts";
import type { AssignmentId } from "../../controller/model/ids.ts";
import type { ExecutorEvents } from "../../controller/offers.ts";
import { createLateEvents } from "../../facade/late_events.ts";
import { createRegistry, type OfferState, type Registry } from "../../facade/registry.ts";
import { createRelay, type Relay } from "../../facade/relay.ts";
import type { Clock } from "../../lib/clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import type { Task } from "../../proto/gen/runner/v1/messages_pb.ts";

/** An executor as the facade has authenticated it. */
export interface Caller {
  readonly id: AssignmentId;
  readonly spiffeId: string;
  readonly gate: string;
}

/** What the gate is told. `away`: the facade is not there, or not now. */
export type Told<T> =
  | { readonly kind: "done"; readonly value: T }
  | { readonly kind: "away" }
  | { readonly kind: "refused" };

/** What a gate's heartbeat says. */
export interface Beat {
  readonly holdsTask: boolean;
  /** Absent: a gate of an earlier release, or one that was not handed its task. */
  readonly logOffset?: number;
}

/** The facade without its transport: real registry and relays, calls instead of Connect. */
export interface FakeFacade {
  readonly offers: Registry;
  /** Answers of FetchTask that get lost on their way from now on. */
  loseAnswers: number;
  bind(events: ExecutorEvents): void;
  /** The process is gone. */
  close(): void;
  /** The task and where its log begins, or null for "none yet". */
  fetchTask(caller: Caller, signal: AbortSignal): Promise<Told<Handed | null>>;
  /** Does something with the relay of the caller's claimed job. */
  report<T>(caller: Caller, act: (relay: Relay) => Promise<T>): Promise<Told<T>>;
  heartbeat(caller: Caller, beat: Beat): void;
  exit(caller: Caller, delivered: boolean): void;
}

/** What a gate is handed. */
export interface Handed {
  readonly task: Task;
  readonly logOffset: number;
}

const HOLD_MS = 4_000;

/** Makes a {@link FakeFacade}; the rules are those of `facade/runner_service.ts`. */
export function createFakeFacade(
  deps: { readonly gitea: Gitea; readonly clock: Clock },
): FakeFacade {
  const { gitea, clock } = deps;
  const events = createLateEvents();
  const registry = createRegistry({
    clock,
    relayFor: (info, offset) =>
      createRelay({ gitea, events, clock, logger: silentLogger }, info, offset),
    ended() {},
  });
  const closed = new AbortController();

  const claimedOf = (caller: Caller): Told<Relay> => {
    if (closed.signal.aborted) return { kind: "away" };
    const found = registry.resolve(caller.id, caller.spiffeId);
    if (found.kind === "unknown") return { kind: registry.isComplete ? "refused" : "away" };
    if (found.kind === "foreign") return { kind: "refused" };
    if (found.kind === "unproven") return { kind: "away" };
    const { state } = found.offer;
    if (state.kind === "offered") return { kind: "refused" };
    if (state.kind === "claimed" && state.gate !== caller.gate) return { kind: "refused" };
    return state.relay === null ? { kind: "refused" } : { kind: "done", value: state.relay };
  };

  const handed = (state: OfferState & { readonly kind: "claimed" }): Handed | null =>
    state.task === null ? null : { task: state.task, logOffset: state.logOffset };

  const fetchTask = async (caller: Caller, signal: AbortSignal): Promise<Told<Handed | null>> => {
    using patience = clock.timeout(HOLD_MS);
    const hold = AbortSignal.any([signal, patience.signal, closed.signal]);
    if (registry.resolve(caller.id, caller.spiffeId).kind === "unproven") {
      events.shown(caller.id, caller.gate, { kind: "asks" });
    }
    const found = await registry.waitOffer(caller.id, caller.spiffeId, hold);
    if (closed.signal.aborted) return { kind: "away" };
    if (found.kind === "foreign") return { kind: "refused" };
    if (found.kind !== "found") return { kind: "done", value: null };
    const { state } = found.offer;
    if (state.kind === "removed") return { kind: "refused" };
    if (state.kind === "claimed") {
      return state.gate === caller.gate
        ? { kind: "done", value: handed(state) }
        : { kind: "refused" };
    }
    const answer = await events.claim(caller.id, caller.gate, hold);
    if (closed.signal.aborted) return { kind: "away" };
    if (answer.kind === "wait") return { kind: "done", value: null };
    if (answer.kind === "refused") return { kind: "refused" };
    registry.claimed(caller.id, caller.gate, answer.logOffset);
    const after = registry.resolve(caller.id, caller.spiffeId);
    return after.kind === "found" && after.offer.state.kind === "claimed"
      ? { kind: "done", value: handed(after.offer.state) }
      : { kind: "refused" };
  };

  const facade: FakeFacade = {
    offers: registry,
    loseAnswers: 0,
    bind: events.bind,
    close: () => closed.abort(new DOMException("Gone", "AbortError")),
    async fetchTask(caller, signal) {
      const told = await fetchTask(caller, signal);
      if (told.kind !== "done" || told.value === null || facade.loseAnswers === 0) return told;
      facade.loseAnswers--;
      return { kind: "away" };
    },
    async report(caller, act) {
      const found = claimedOf(caller);
      if (found.kind !== "done") return found;
      registry.delivered(caller.id);
      try {
        const value = await act(found.value);
        return closed.signal.aborted ? { kind: "away" } : { kind: "done", value };
      } catch {
        return { kind: "away" };
      }
    },
    heartbeat(caller, { holdsTask, logOffset }) {
      if (closed.signal.aborted) return;
      if (registry.resolve(caller.id, caller.spiffeId).kind === "unproven") {
        if (logOffset !== undefined) {
          events.shown(caller.id, caller.gate, { kind: "holds", logOffset });
        } else if (holdsTask) events.shown(caller.id, caller.gate, { kind: "holds_somewhere" });
        return;
      }
      if (claimedOf(caller).kind !== "done") return;
      events.heartbeat(caller.id, { gate: caller.gate, holdsTask });
    },
    exit(caller, delivered) {
      if (closed.signal.aborted) return;
      events.exited(caller.id, { delivered, code: delivered ? 0 : 1, detail: "the test's exit" });
    },
  };
  return facade;
}

/** No facade: every call finds nobody. */
export const NO_FACADE: FakeFacade = {
  get offers(): Registry {
    throw new Error("Use the registry: there is no facade");
  },
  loseAnswers: 0,
  bind() {},
  close() {},
  fetchTask: () => Promise.resolve({ kind: "away" }),
  report: () => Promise.resolve({ kind: "away" }),
  heartbeat() {},
  exit() {},
};
