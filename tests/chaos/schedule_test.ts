import assert from "node:assert/strict";
import { faultsOf } from "./faults.ts";
import { compareQuarters } from "./memory.ts";
import { createRandom } from "./random.ts";
import { jobsOfRound, type Lane, planRound } from "./schedule.ts";

const plan = (seed: number, number: number, lane: Lane = "killed") =>
  planRound(seed, { lane, number, faults: faultsOf(lane).map(({ name }) => name) });

Deno.test("planRound() plans the same round from the same seed, and another from another", () => {
  assert.deepEqual(plan(5, 3), plan(5, 3));
  assert.notDeepEqual(plan(5, 3), plan(6, 3));
  assert.notDeepEqual(plan(5, 3).jobs, plan(5, 3, "steady").jobs);
});

Deno.test("planRound() brings more jobs and more faults with each round, up to a bound", () => {
  const sizes = [1, 2, 3, 4, 5, 6, 7, 8, 9].map((number) => jobsOfRound("killed", number));
  assert.deepEqual(sizes, sizes.toSorted((a, b) => a - b));
  assert.equal(sizes.at(-1), sizes.at(-2));
  assert.ok(plan(1, 6).faults.length > plan(1, 1).faults.length);
  assert.equal(plan(1, 4).jobs.length, jobsOfRound("killed", 4));
});

Deno.test("planRound() takes every fault of a lane sooner or later, and none of another", () => {
  for (const lane of ["steady", "killed", "real"] as const) {
    const met = new Set<string>();
    for (let number = 1; number <= 60; number++) {
      for (const { name } of plan(9, number, lane).faults) met.add(name);
    }
    assert.deepEqual([...met].toSorted(), faultsOf(lane).map(({ name }) => name).toSorted());
  }
  assert.ok(!faultsOf("steady").some(({ name }) => name === "controller killed"));
});

Deno.test("between() gives every number of its range and no other", () => {
  const random = createRandom("seed", 1);
  const met = new Set(Array.from({ length: 500 }, () => random.between(2, 5)));
  assert.deepEqual([...met].toSorted(), [2, 3, 4, 5]);
});

Deno.test("compareQuarters() compares the jobs' quarters, whatever time they took", () => {
  const samples = Array.from({ length: 100 }, (_, at) => ({ at, mib: at < 90 ? 100 : 120 }));
  // Half of the jobs ended within the first tenth of the time.
  const marks = Array.from({ length: 40 }, (_, n) => n < 20 ? n / 2 : 10 + (n - 20) * 4.5);
  const figures = compareQuarters(samples, marks);
  assert.deepEqual([figures?.first, figures?.most], [100, 120]);
  assert.equal(compareQuarters(samples.map(({ at }) => ({ at, mib: at })), [0, 50, 99])?.last, 99);
  assert.equal(compareQuarters([], marks), undefined);
});
