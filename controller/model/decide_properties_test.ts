import assert from "node:assert/strict";
import { fc } from "../../tests/support/property.ts";
import { events, NOW, X } from "../../tests/support/state_events.ts";
import { decide } from "./decide.ts";
import { DEFAULT_DELAYS } from "./decision.ts";
import { type Effect, type Event, holdsSlot, type State, stateName } from "./state.ts";

/** Moves that are allowed, by kind; everything else is a fault. */
const ALLOWED: Readonly<Record<State["kind"], readonly State["kind"][]>> = {
  stored: ["admitted", "parked", "settling"],
  parked: ["stored", "admitted", "settling"],
  // The record decides about a claim, whatever was believed before.
  admitted: ["stored", "starting", "ready", "claimed", "parked", "settling"],
  starting: ["stored", "admitted", "ready", "claimed", "parked", "settling"],
  ready: ["admitted", "starting", "claimed", "parked", "settling"],
  // Never back: a job that was handed over is not run again.
  claimed: ["running", "terminal", "settling"],
  running: ["terminal", "settling"],
  settling: ["terminal"],
  terminal: ["cleaned"],
  cleaned: [],
};

const anyEvent = fc.constantFrom(...Object.values(events));
const anyPath = fc.array(fc.tuple(anyEvent, fc.nat(400_000)), { maxLength: 40 });

function walk(
  path: readonly (readonly [Event, number])[],
  look: (before: State, event: Event, after: ReturnType<typeof decide>, now: number) => void,
): State {
  let state: State = { kind: "stored" };
  let now = NOW;
  for (const [event, passed] of path) {
    now += passed;
    const decision = decide(state, event, now);
    look(state, event, decision, now);
    state = decision.state;
  }
  return state;
}

Deno.test("decide() makes no forbidden move, whatever comes", () => {
  fc.assert(
    fc.property(anyPath, (path) => {
      walk(path, (before, event, { state }) => {
        if (before.kind === state.kind) return;
        const move = `${before.kind} -> ${state.kind} by ${event.kind}`;
        assert.ok(ALLOWED[before.kind].includes(state.kind), move);
      });
    }),
    { numRuns: 3_000 },
  );
});

Deno.test("decide() changes nothing when an event is repeated", () => {
  fc.assert(
    fc.property(anyPath, (path) => {
      walk(path, (_before, event, { state }, now) => {
        assert.deepEqual(decide(state, event, now).state, state);
      });
    }),
    { numRuns: 3_000 },
  );
});

Deno.test("decide() acknowledges only what the runner holds or Gitea was told", () => {
  fc.assert(
    fc.property(anyPath, (path) => {
      walk(path, (_before, _event, { state, effects }) => {
        if (!effects.some(({ kind }) => kind === "ack" || kind === "terminate")) return;
        const held = state.kind === "claimed" && state.ack === "requested";
        assert.ok(held || ["running", "terminal", "cleaned"].includes(state.kind), state.kind);
      });
    }),
    { numRuns: 3_000 },
  );
});

Deno.test("decide() leaves no slot behind what is cleaned, and cleaned is the end", () => {
  fc.assert(
    fc.property(anyPath, (path) => {
      let cleaned = false;
      walk(path, (_before, _event, { state }) => {
        cleaned ||= state.kind === "cleaned";
        if (cleaned) assert.equal(state.kind, "cleaned");
        if (cleaned) assert.equal(holdsSlot(state), false);
      });
    }),
    { numRuns: 3_000 },
  );
});

Deno.test("decide() gives a slot back before the claim only when no executor can exist", () => {
  fc.assert(
    fc.property(anyPath, (path) => {
      walk(path, (before, event, { state, effects }) => {
        if (!holdsSlot(before) || holdsSlot(state)) return;
        const none = event.kind === "backend_failed" && event.executor === "none";
        const removed = effects.some(({ kind }) => kind === "delete_executor");
        const over = event.kind === "executor_ended" || event.kind === "executor_gone" ||
          "presence" in state && state.presence !== "alive";
        assert.ok(none || removed || over, `${stateName(before)} by ${event.kind}`);
      });
    }),
    { numRuns: 3_000 },
  );
});

/**
 * A world that does what it is asked. Effects become answers that come in any order; until the faults
 * are over, other things happen too. Then every life must end in `cleaned`.
 */
function createWorld() {
  let state: State = { kind: "stored" };
  let message: "queued" | "in_hand" | "gone" = "queued";
  let executor: "none" | "alive" | "ended" | "gone" = "none";
  let recorded = true;
  let now = NOW;
  const answers: Event[] = [];

  const run = (effect: Effect) => {
    switch (effect.kind) {
      case "accept":
        if (executor !== "alive") executor = "alive";
        answers.push({ kind: "executor_seen", executor: X }, { kind: "ready", executor: X });
        break;
      case "ack":
      case "terminate":
        message = "gone";
        answers.push({ kind: "message_gone" });
        break;
      case "nak":
        message = message === "gone" ? "gone" : "queued";
        break;
      case "settle":
        answers.push({ kind: "settled" });
        break;
      case "mark":
        answers.push({ kind: "marked" });
        break;
      case "delete_executor":
        executor = "gone";
        answers.push({ kind: "executor_gone" });
        break;
      case "finish":
        recorded = false;
        answers.push({ kind: "record_deleted" });
        break;
      case "journal":
      case "withdraw":
      case "remember_parked":
      case "await_claim":
        break;
      default:
        effect satisfies never;
    }
  };
  const happen = (event: Event) => {
    if (event.kind === "delivered" && message === "gone") return;
    if (event.kind === "delivered") message = "in_hand";
    if (event.kind === "claim_recorded" && executor !== "alive") return;
    if (event.kind === "message_gone" && message !== "gone") return;
    if (event.kind === "executor_ended" || event.kind === "executor_gone") {
      if (executor === "none") return;
      executor = event.kind === "executor_gone" ? "gone" : executor === "gone" ? "gone" : "ended";
    }
    if (event.kind === "settled" && state.kind !== "settling") return;
    const decision = decide(state, event, now);
    state = decision.state;
    for (const effect of decision.effects) run(effect);
  };
  /** What goes on by itself when nothing is broken. */
  const nature = (): Event | undefined => {
    switch (state.kind) {
      case "stored":
      case "parked":
        return events.delivered;
      case "ready":
        return executor === "alive" ? events.claim : events.claimTimeout;
      case "claimed":
        return executor === "alive" ? events.held : events.lost;
      case "running":
        return executor === "alive" ? events.final : events.lost;
      case "terminal":
        return executor === "gone" ? events.gone : events.ended;
      case "settling":
        return executor === "gone" ? events.gone : undefined;
      case "admitted":
      case "starting":
      case "cleaned":
        return undefined;
      default:
        return state satisfies never;
    }
  };
  return {
    state: () => state,
    recorded: () => recorded,
    /** One thing happens: an answer that is due, or `other`. */
    step(pick: number, other: Event) {
      now += 1_000;
      const [answer] = pick % 2 === 0 ? answers.splice(pick % (answers.length || 1), 1) : [];
      happen(answer ?? other);
    },
    /** Everything works from now on; resolves to the steps that were needed. */
    finish(): number {
      for (let steps = 0; steps < 200; steps++) {
        if (state.kind === "cleaned") return steps;
        now += DEFAULT_DELAYS.parkMs;
        const event = answers.shift() ?? nature();
        if (event !== undefined) happen(event);
      }
      assert.fail(`stuck: ${JSON.stringify({ state, message, executor })}`);
    },
  };
}

const faults: Event[] = Object.values(events).filter(({ kind }) =>
  !["settled", "marked", "record_deleted", "message_gone"].includes(kind)
);

Deno.test("decide() ends every life in cleaned when the world answers", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(9), fc.constantFrom(...faults)), { maxLength: 30 }),
      (steps) => {
        const world = createWorld();
        for (const [pick, other] of steps) world.step(pick, other);
        world.finish();
        assert.equal(world.state().kind, "cleaned");
        assert.equal(world.recorded(), false);
      },
    ),
    { numRuns: 3_000 },
  );
});
