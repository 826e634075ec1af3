import assert from "node:assert/strict";
import { divide, type Moments, noteMoment } from "./moments.ts";

const SPANS = [
  { name: "identity", startedAt: 0, endedAt: 10 },
  { name: "start", startedAt: 10, endedAt: 100 },
  { name: "run", startedAt: 100, endedAt: null },
];
const shown = (moments: Moments) =>
  divide(SPANS, moments).map(({ name, startedAt, endedAt }) => [name, startedAt, endedAt]);

Deno.test("divide() names what is before each moment, in the order of time", () => {
  const moments: Moments = new Map([["first_call", 90], ["scheduled", 20], ["image_ready", 70]]);
  assert.deepEqual(shown(moments), [
    ["identity", 0, 10],
    ["schedule", 10, 20],
    ["image", 20, 70],
    ["boot", 70, 90],
    ["start", 90, 100],
    ["run", 100, null],
  ]);
});

Deno.test("divide() divides a phase that lasts, and leaves out what is outside of its phase", () => {
  assert.deepEqual(shown(new Map([["first_row", 130], ["scheduled", 5]])), [
    ["identity", 0, 10],
    ["start", 10, 100],
    ["first_row", 100, 130],
    ["run", 130, null],
  ]);
  assert.deepEqual(divide(SPANS, new Map()), SPANS);
});

Deno.test("noteMoment() keeps the first time", () => {
  const moments: Moments = new Map();
  noteMoment(moments, "first_call", 5);
  noteMoment(moments, "first_call", 9);
  assert.equal(moments.get("first_call"), 5);
});
