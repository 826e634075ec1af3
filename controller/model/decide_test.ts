import assert from "node:assert/strict";
import { events, NOW, X } from "../../tests/support/state_events.ts";
import { decide } from "./decide.ts";
import { DEFAULT_DELAYS } from "./decision.ts";
import type { Result } from "./reason.ts";
import { type Effect, type Event, holdsSlot, type State } from "./state.ts";

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

/** What happens until the runner is at work, and the journal of it. */
const HANDED_OVER = ["delivered", "seen", "ready", "claim", "held", "messageGone"];
const TO_RUNNING = [
  "received",
  "capacity_acquired",
  "backend_ready",
  "runner_claimed",
  "acked",
  "running",
];
const lives: [string, readonly string[], State["kind"], readonly string[], readonly string[]][] = [
  [
    "a job that succeeds",
    [...HANDED_OVER, "final", "marked", "ended", "gone", "deleted"],
    "cleaned",
    [...TO_RUNNING, "terminal", "marked", "cleaned"],
    ["accept", "await_claim", "ack", "mark", "delete_executor", "finish"],
  ],
  [
    "an executor that ends before it is marked",
    [...HANDED_OVER, "final", "ended", "marked", "gone", "deleted"],
    "cleaned",
    [...TO_RUNNING, "terminal", "marked", "cleaned"],
    ["accept", "await_claim", "ack", "mark", "delete_executor", "finish"],
  ],
  [
    "a job that ends before its message is acknowledged",
    ["delivered", "seen", "ready", "claim", "final", "messageGone", "marked", "ended", "gone"],
    "terminal",
    [...TO_RUNNING, "terminal", "marked"],
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
    ["accept", "withdraw", "nak"],
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
    ["accept", "accept", "withdraw", "delete_executor", "remember_parked", "nak"],
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
    [...TO_RUNNING, "lost", "terminal", "cleaned"],
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
    "an executor whose gate says goodbye before the backend knows",
    [...HANDED_OVER, "final", "marked", "leaving"],
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
    ["accept", "await_claim", "ack", "mark"],
  ],
  [
    "a ready executor that has ended",
    ["delivered", "seen", "ready", "lookAgain", "executorFailed"],
    "admitted",
    ["received", "capacity_acquired", "backend_ready", "backend_retry"],
    ["accept", "await_claim", "accept", "accept"],
  ],
  [
    "a claim that was recorded while the executor was being looked at again",
    ["delivered", "seen", "ready", "lookAgain", "claim"],
    "claimed",
    ["received", "capacity_acquired", "backend_ready", "runner_claimed"],
    ["accept", "await_claim", "accept"],
  ],
  [
    "a second, different message while its executor is made",
    ["delivered", "seen", "conflicting", "settled", "messageGone", "gone", "deleted"],
    "cleaned",
    ["received", "capacity_acquired", "conflicting assignment", "terminal", "cleaned"],
    ["accept", "withdraw", "settle", "terminate", "delete_executor", "finish"],
  ],
  [
    "a message that comes again after the claim",
    [...HANDED_OVER, "delivered"],
    "running",
    TO_RUNNING,
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
    const event: Event = {
      kind: "executor_failed",
      code: "executor_failed",
      detail: "it broke",
      failures,
    };
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

Deno.test("decide() ends a parking whose end the wall clock, set back by an hour, has moved away", () => {
  const parked: State = { kind: "parked", until: NOW + DEFAULT_DELAYS.parkMs };
  const delivered = events.delivered ?? { kind: "held" };
  assert.equal(decide(parked, delivered, NOW).state.kind, "parked");
  assert.equal(decide(parked, delivered, NOW - 3_600_000).state.kind, "admitted");
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

Deno.test("decide() frees the slot at the gate's goodbye, and deletes at the backend's word", () => {
  const { state } = live([...HANDED_OVER, "final", "marked"]);
  assert.equal(holdsSlot(state), true);
  const left = decide(state, { kind: "executor_leaving" }, NOW);
  assert.deepEqual([holdsSlot(left.state), left.effects], [false, []]);
  const ended = decide(left.state, { kind: "executor_ended" }, NOW);
  assert.deepEqual(ended.effects, [{ kind: "delete_executor" }]);
  assert.deepEqual(decide(ended.state, { kind: "executor_leaving" }, NOW).state, ended.state);
});

Deno.test("decide() keeps the reason of an end that we reported ourselves", () => {
  const lost = decide(live(HANDED_OVER).state, events.lost ?? { kind: "held" }, NOW);
  assert.equal(lost.waiting?.code, "executor_failed");
  const settled = decide(lost.state, { kind: "settled" }, NOW);
  assert.equal("waiting" in settled, false);
});
