import assert from "node:assert/strict";
import { assignmentIdOf, parseTaskId } from "./model/ids.ts";
import { createPool } from "./pool.ts";

const id = (n: number) => {
  const task = parseTaskId(String(n));
  assert.ok(task);
  return assignmentIdOf(task);
};

Deno.test("free() follows the states of the assignments when they are observed", () => {
  const pool = createPool({ capacity: () => 2, open: () => true });
  pool.observe(id(1), { kind: "stored" });
  assert.equal(pool.free(), 2);
  pool.observe(id(1), { kind: "admitted" });
  pool.observe(id(1), { kind: "admitted" });
  assert.equal(pool.free(), 1);
  pool.observe(id(1), { kind: "cleaned", result: "success" });
  pool.observe(id(1), { kind: "cleaned", result: "success" });
  assert.equal(pool.free(), 2);
});

Deno.test("admits() says yes to the holder of a slot when the pool is full", () => {
  const pool = createPool({ capacity: () => 1, open: () => true });
  pool.observe(id(1), { kind: "admitted" });
  assert.equal(pool.admits(id(1)), true);
  assert.equal(pool.admits(id(2)), false);
});

Deno.test("free() is never negative when restored slots exceed a reduced capacity", () => {
  let capacity = 3;
  const pool = createPool({ capacity: () => capacity, open: () => true });
  for (const n of [1, 2, 3]) pool.observe(id(n), { kind: "admitted" });
  capacity = 1;
  pool.refresh();
  assert.equal(pool.free(), 0);
  pool.observe(id(1), { kind: "cleaned", result: null });
  pool.observe(id(2), { kind: "cleaned", result: null });
  assert.equal(pool.free(), 0);
  pool.observe(id(3), { kind: "cleaned", result: null });
  assert.equal(pool.free(), 1);
});

Deno.test("free() is 0 when the pool is not open", () => {
  const pool = createPool({ capacity: () => 4, open: () => false });
  assert.equal(pool.free(), 0);
  assert.equal(pool.admits(id(1)), false);
});

Deno.test("changed() resolves when a slot is taken or freed, and rejects when aborted", async () => {
  const pool = createPool({ capacity: () => 1, open: () => true });
  const stop = new AbortController();
  const change = pool.changed(stop.signal);
  pool.observe(id(1), { kind: "admitted" });
  await change;
  const next = pool.changed(stop.signal);
  stop.abort(new Error("stop"));
  await assert.rejects(next, /stop/);
});

Deno.test("free() leaves room for executors that nobody can account for, until they are gone", async () => {
  let unknown = 1;
  const pool = createPool({ capacity: () => 2, open: () => true, unknown: () => unknown });
  assert.equal(pool.free(), 1);
  pool.observe(id(1), { kind: "admitted" });
  assert.deepEqual([pool.free(), pool.admits(id(1)), pool.admits(id(2))], [0, true, false]);
  const change = pool.changed(new AbortController().signal);
  unknown = 0;
  pool.refresh();
  await change;
  assert.equal(pool.free(), 1);
});
