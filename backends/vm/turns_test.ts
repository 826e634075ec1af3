import assert from "node:assert/strict";
import { createTurns } from "./turns.ts";

const call = { signal: new AbortController().signal };

Deno.test("take() runs one at a time for a key, in order, and others beside it", async () => {
  const turns = createTurns();
  const { promise, resolve } = Promise.withResolvers<void>();
  const done: string[] = [];
  const first = turns.take("a", call, async () => {
    await promise;
    done.push("a1");
  });
  const second = turns.take("a", call, () => Promise.resolve(void done.push("a2")));
  await turns.take("b", call, () => Promise.resolve(void done.push("b")));
  assert.deepEqual(done, ["b"]);
  resolve();
  await Promise.all([first, second]);
  assert.deepEqual(done, ["b", "a1", "a2"]);
});

Deno.test("take() rejects at once when its signal aborts, and lets nobody pass those before it", async () => {
  const turns = createTurns();
  const { promise, resolve } = Promise.withResolvers<void>();
  const controller = new AbortController();
  const reason = new Error("stopped by the test");
  const done: string[] = [];
  const first = turns.take("a", call, async () => {
    await promise;
    done.push("first");
  });
  const left = turns.take("a", controller, () => Promise.resolve(void done.push("left")));
  const third = turns.take("a", call, () => Promise.resolve(void done.push("third")));
  controller.abort(reason);
  await assert.rejects(left, reason);
  assert.deepEqual(done, []);
  resolve();
  await Promise.all([first, third]);
  assert.deepEqual(done, ["first", "third"]);
});

Deno.test("take() goes on after work that has failed", async () => {
  const turns = createTurns();
  await assert.rejects(turns.take("a", call, () => Promise.reject(new Error("no"))), /no/);
  assert.equal(await turns.take("a", call, () => Promise.resolve(7)), 7);
});
