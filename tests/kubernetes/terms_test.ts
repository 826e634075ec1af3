import assert from "node:assert/strict";
import { type LeaseState, transitionGaps } from "./lease_history.ts";
import { type Effect, judge, termsOf } from "./terms.ts";

const A = "controller-a_1";
const B = "controller-b_1";

function state(at: number, holder: string, transitions: number): LeaseState {
  return { at, kind: "stands", holder, transitions };
}

const effect = (at: number, kind: Effect["kind"] = "effect"): Effect => ({
  at,
  where: "NATS",
  what: "$KV.CI_RUNNER_STATE.task.1",
  kind,
});

/** A leads from 90, gives the Lease back at 200; B asks for it at 290. */
const STATES = [state(100, A, 0), state(150, A, 0), state(200, "", 0), state(300, B, 1)];
const WRITES = new Map([["controller-a", [90, 140, 195]], ["controller-b", [290]]]);

function judged(a: readonly Effect[], b: readonly Effect[]) {
  const terms = termsOf(STATES, WRITES);
  return judge(terms, new Map([["controller-a", a], ["controller-b", b]]));
}

Deno.test("termsOf() dates a term from the write that won", () => {
  assert.deepEqual(
    termsOf(STATES, WRITES).map(({ pod, from, released }) => [pod, from, released]),
    [["controller-a", 90, 200], ["controller-b", 290, null]],
  );
});

Deno.test("judge() measures from the last effect of the one to the first of the next", () => {
  const { overlaps, handovers, effects } = judged([effect(95), effect(180)], [effect(310)]);
  assert.deepEqual(overlaps, []);
  assert.deepEqual(handovers.map(({ last, first }) => [last, first]), [[180, 310]]);
  assert.equal(effects, 3);
});

Deno.test("judge() finds an effect after another has taken the Lease, and one before the first lead", () => {
  assert.match(judged([effect(291)], []).overlaps.join(), /by "controller-a" 1 ms after/);
  assert.match(judged([], [effect(289)]).overlaps.join(), /by "controller-b"/);
  assert.match(judged([effect(50)], []).overlaps.join(), /by "controller-a"/);
});

Deno.test("judge() counts a late store apart for 10 s, and labels that are taken off", () => {
  const { overlaps, lateStores, ownLabels } = judged(
    [effect(95), effect(400, "store"), effect(500, "own label off")],
    [effect(300)],
  );
  assert.deepEqual([overlaps.length, lateStores, ownLabels], [0, 1, 1]);
  assert.equal(judged([effect(95), effect(10_291, "store")], []).overlaps.length, 1);
  assert.deepEqual(judged([effect(50, "stream made")], []).overlaps, []);
  assert.equal(judged([], [effect(250, "stream made")]).overlaps.length, 1);
});

Deno.test("transitionGaps() finds what was not raised by one at a change", () => {
  assert.deepEqual(transitionGaps(STATES, () => false), []);
  assert.equal(transitionGaps([state(1, A, 0), state(2, B, 2)], () => false).length, 1);
  assert.equal(transitionGaps([state(1, A, 0), state(2, A, 1)], () => false).length, 1);
  const gone: LeaseState = { at: 2, kind: "deleted", holder: A, transitions: 3 };
  const anew = [state(1, A, 3), gone, state(3, B, 0)];
  assert.equal(transitionGaps(anew, () => false).length, 1);
  assert.deepEqual(transitionGaps(anew, (holder) => holder === B), []);
});
