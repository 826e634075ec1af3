import assert from "node:assert/strict";
import { fc } from "../../tests/support/property.ts";
import { decide, DEFAULT_DELAYS } from "./decide.ts";
import type { ExecutorName } from "./ids.ts";
import type { Result } from "./reason.ts";
import { type Effect, type Event, holdsSlot, type State, stateName } from "./state.ts";

const NOW = 1_000_000;
const X = "ci-00-1" as ExecutorName;
const readable = { kind: "readable" } as const;
const why = { code: "executor_failed", detail: "it broke" } as const;

const events: Record<string, Event> = {
  delivered: { kind: "delivered", content: readable, slot: "free" },
  deliveredFull: { kind: "delivered", content: readable, slot: "none" },
  invalid: { kind: "delivered", content: { kind: "invalid", detail: "bad" }, slot: "free" },
  conflicting: { kind: "delivered", content: { kind: "conflicting", detail: "two" }, slot: "free" },
  unreadable: { kind: "delivered", content: { kind: "unreadable", detail: "v3" }, slot: "free" },
  seen: { kind: "executor_seen", executor: X },
  notReady: { kind: "not_ready", code: "identity_pending", detail: "soon" },
  ready: { kind: "ready", executor: X },
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
  ended: { kind: "executor_ended" },
  gone: { kind: "executor_gone" },
  marked: { kind: "marked" },
  cancelled: { kind: "cancelled", detail: "by a user" },
  lost: { kind: "lost", ...why },
  gaveUp: { kind: "gave_up", code: "max_wait", detail: "2 h" },
  unparked: { kind: "unparked" },
  deleted: { kind: "record_deleted" },
};

interface Life {
  readonly state: State;
  readonly journal: string[];
  readonly effects: Effect[];
}

function live(names: readonly string[], start: State = { kind: "stored" }): Life {
  let state = start;
  const effects: Effect[] = [];
  for (const name of names) {
    const event = events[name];
    assert.ok(event !== undefined, name);
    const decision = decide(state, event, NOW);
    state = decision.state;
    effects.push(...decision.effects);
  }
  const journal = effects.flatMap((effect) => effect.kind === "journal" ? [effect.event] : []);
  return { state, journal, effects: effects.filter((effect) => effect.kind !== "journal") };
}

const HANDED_OVER = ["delivered", "seen", "ready", "claim", "held", "messageGone"];
const lives: [string, readonly string[], State["kind"], readonly string[], readonly string[]][] = [
  [
    "a job that succeeds",
    [...HANDED_OVER, "final", "marked", "ended", "gone", "deleted"],
    "cleaned",
    [
      "received",
      "capacity_acquired",
      "backend_ready",
      "runner_claimed",
      "acked",
      "running",
      "terminal",
      "marked",
      "cleaned",
    ],
    ["accept", "await_claim", "ack", "mark", "delete_executor", "finish"],
  ],
  [
    "an executor that ends before it is marked",
    [...HANDED_OVER, "final", "ended", "marked", "gone", "deleted"],
    "cleaned",
    [
      "received",
      "capacity_acquired",
      "backend_ready",
      "runner_claimed",
      "acked",
      "running",
      "terminal",
      "marked",
      "cleaned",
    ],
    ["accept", "await_claim", "ack", "mark", "delete_executor", "finish"],
  ],
  [
    "a job that ends before its message is acknowledged",
    ["delivered", "seen", "ready", "claim", "final", "messageGone", "marked", "ended", "gone"],
    "terminal",
    [
      "received",
      "capacity_acquired",
      "backend_ready",
      "runner_claimed",
      "acked",
      "running",
      "terminal",
      "marked",
    ],
    ["accept", "await_claim", "ack", "mark", "delete_executor", "finish"],
  ],
  [
    "a full pool",
    ["deliveredFull", "delivered"],
    "admitted",
    ["received", "capacity_wait", "received", "capacity_acquired"],
    ["nak", "accept"],
  ],
  [
    "a backend that is slow",
    ["delivered", "seen", "notReady", "ready"],
    "ready",
    ["received", "capacity_acquired", "backend_pending", "backend_ready"],
    ["accept", "accept", "await_claim"],
  ],
  [
    "a backend that fails without an executor",
    ["delivered", "backendFailed"],
    "stored",
    ["received", "capacity_acquired", "backend_retry"],
    ["accept", "nak"],
  ],
  [
    "a backend that fails while an executor may exist",
    ["delivered", "backendDoubt"],
    "admitted",
    ["received", "capacity_acquired", "backend_retry"],
    ["accept", "accept"],
  ],
  [
    "a claim that does not come in time",
    ["delivered", "ready", "claimTimeout"],
    "starting",
    ["received", "capacity_acquired", "backend_ready", "claim_timeout"],
    ["accept", "await_claim", "accept"],
  ],
  [
    "the fifth executor that fails",
    ["delivered", "seen", "executorFailed", "executorFailed5"],
    "parked",
    ["received", "capacity_acquired", "backend_retry", "parked"],
    ["accept", "accept", "delete_executor", "nak"],
  ],
  [
    "an invalid message",
    ["invalid", "settled", "messageGone", "deleted"],
    "cleaned",
    ["received", "invalid assignment", "terminal", "cleaned"],
    ["withdraw", "settle", "terminate", "finish"],
  ],
  [
    "a conflicting message",
    ["conflicting", "settled", "messageGone", "deleted"],
    "cleaned",
    ["received", "conflicting assignment", "terminal", "cleaned"],
    ["withdraw", "settle", "terminate", "finish"],
  ],
  ["an unreadable message", ["unreadable"], "parked", ["received", "unreadable"], ["nak"]],
  [
    "a job that is cancelled while its executor starts",
    ["delivered", "seen", "cancelled", "settled", "messageGone", "gone", "deleted"],
    "cleaned",
    ["received", "capacity_acquired", "cancelled", "terminal", "cleaned"],
    ["accept", "withdraw", "settle", "ack", "delete_executor", "finish"],
  ],
  [
    "a job that waited too long",
    ["deliveredFull", "gaveUp", "settled", "messageGone", "deleted"],
    "cleaned",
    ["received", "capacity_wait", "terminal", "cleaned"],
    ["nak", "withdraw", "settle", "ack", "finish"],
  ],
  [
    "an executor that is lost while its job runs",
    [...HANDED_OVER, "gone", "lost", "settled", "deleted"],
    "cleaned",
    [
      "received",
      "capacity_acquired",
      "backend_ready",
      "runner_claimed",
      "acked",
      "running",
      "lost",
      "terminal",
      "cleaned",
    ],
    ["accept", "await_claim", "ack", "withdraw", "settle", "finish"],
  ],
  [
    "an executor that is lost before its message is acknowledged",
    ["delivered", "ready", "claim", "ended", "lost", "settled", "messageGone", "gone", "deleted"],
    "cleaned",
    [
      "received",
      "capacity_acquired",
      "backend_ready",
      "runner_claimed",
      "lost",
      "terminal",
      "cleaned",
    ],
    ["accept", "await_claim", "withdraw", "settle", "ack", "delete_executor", "finish"],
  ],
  [
    "a message that comes again after the claim",
    [...HANDED_OVER, "delivered"],
    "running",
    ["received", "capacity_acquired", "backend_ready", "runner_claimed", "acked", "running"],
    ["accept", "await_claim", "ack", "ack"],
  ],
];
for (const [name, path, kind, journal, effects] of lives) {
  Deno.test(`decide() leads ${name} to ${kind}`, () => {
    const life = live(path);
    assert.equal(life.state.kind, kind);
    assert.deepEqual(life.journal, journal);
    assert.deepEqual(life.effects.map((effect) => effect.kind), effects);
  });
}

Deno.test("decide() names delays in its effects and its journal", () => {
  const delays: [string[], string, number][] = [
    [["deliveredFull"], "capacity_wait", 2_000],
    [["delivered", "backendFailed"], "backend_retry", 15_000],
    [["delivered", "notReady"], "backend_pending", 2_000],
    [["delivered", "ready", "claimTimeout"], "claim_timeout", 2_000],
    [["delivered", "executorFailed5"], "parked", 300_000],
  ];
  for (const [path, event, delay] of delays) {
    let state: State = { kind: "stored" };
    let last: readonly Effect[] = [];
    for (const name of path) {
      const next = decide(state, events[name] ?? { kind: "held" }, NOW);
      [state, last] = [next.state, next.effects];
    }
    const entry = last.find((effect) => effect.kind === "journal" && effect.event === event);
    assert.equal(entry?.kind === "journal" && entry.retryDelayMs, delay);
    const action = last.find((effect) => effect.kind === "nak" || effect.kind === "accept");
    const after = action?.kind === "nak"
      ? action.delayMs
      : action?.kind === "accept"
      ? action.afterMs
      : null;
    assert.equal(after, delay);
  }
});

Deno.test("decide() waits longer for each executor that fails, up to a minute", () => {
  const delays = { ...DEFAULT_DELAYS, maxFailures: 100 };
  const waits = [1, 2, 3, 4, 5, 6, 50].map((failures) => {
    const event: Event = { kind: "executor_failed", ...why, failures };
    const { effects } = decide({ kind: "starting", executor: X }, event, NOW, delays);
    const accept = effects.find((effect) => effect.kind === "accept");
    return accept?.kind === "accept" ? accept.afterMs : null;
  });
  assert.deepEqual(waits, [2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
});

Deno.test("decide() gives a parked message back for the rest of its time", () => {
  const parked: State = { kind: "parked", until: NOW + 5_000 };
  const delivered = events.delivered ?? { kind: "held" };
  assert.deepEqual(decide(parked, delivered, NOW).effects, [{ kind: "nak", delayMs: 5_000 }]);
  assert.equal(decide(parked, delivered, NOW + 5_000).state.kind, "admitted");
});

/** Moves that are allowed, by kind; everything else is a fault. */
const ALLOWED: Readonly<Record<State["kind"], readonly State["kind"][]>> = {
  stored: ["admitted", "parked", "settling"],
  parked: ["stored", "admitted", "settling"],
  admitted: ["stored", "starting", "ready", "parked", "settling"],
  starting: ["admitted", "ready", "parked", "settling"],
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

Deno.test("decide() keeps the first result that Gitea accepted", () => {
  const results: Result[] = ["success", "failure", "cancelled", "skipped"];
  for (const result of results) {
    const { state } = live(HANDED_OVER);
    const ended = decide(state, { kind: "final_accepted", result }, NOW).state;
    const again = decide(ended, { kind: "final_accepted", result: "failure" }, NOW).state;
    assert.ok(again.kind === "terminal" && again.result === result);
  }
});
