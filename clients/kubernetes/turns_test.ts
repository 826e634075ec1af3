import assert from "node:assert/strict";
import { createTurns } from "./turns.ts";

const never = new AbortController().signal;
const settle = async () => {
  for (let i = 0; i < 10; i++) await Promise.resolve();
};

Deno.test("createTurns() serves as many as allowed, the others in order", async () => {
  const turns = createTurns(2);
  const order: number[] = [];
  const take = async (n: number) => {
    const turn = await turns.take(never);
    order.push(n);
    return turn;
  };
  const [first, , third] = [take(1), take(2), take(3)];
  void take(4);
  await settle();
  assert.deepEqual(order, [1, 2]);
  (await first)[Symbol.dispose]();
  (await first)[Symbol.dispose]();
  await settle();
  assert.deepEqual(order, [1, 2, 3]);
  (await third)?.[Symbol.dispose]();
  await settle();
  assert.deepEqual(order, [1, 2, 3, 4]);
});

Deno.test("createTurns() loses no turn to those who gave up, not even when called in that moment", async () => {
  const turns = createTurns(1);
  const first = await turns.take(never);
  const controller = new AbortController();
  const gaveUp = turns.take(controller.signal);
  const waits = turns.take(never);
  controller.abort(new Error("gone"));
  await assert.rejects(gaveUp, /gone/);
  const late = new AbortController();
  const calledAndGone = turns.take(late.signal);
  first[Symbol.dispose]();
  (await waits)[Symbol.dispose]();
  late.abort(new Error("gone"));
  await calledAndGone.then((turn) => turn[Symbol.dispose](), () => {});
  (await turns.take(never))[Symbol.dispose]();
  await assert.rejects(turns.take(late.signal), /gone/);
});
