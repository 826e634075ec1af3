import assert from "node:assert/strict";
import { createFakeClock } from "../lib/fake_clock.ts";
import { createPeerLimits } from "./limits.ts";
import { createTurnstile } from "./turnstile.ts";

Deno.test("enter() bounds the rate of each peer by itself", async () => {
  const clock = createFakeClock();
  const limits = createPeerLimits(clock, { perSecond: 2, burst: 3, concurrent: 9, total: 99 });
  const ask = (peer: string) => {
    const place = limits.enter(peer);
    if (place.kind === "admitted") place[Symbol.dispose]();
    return place.kind;
  };
  assert.deepEqual(["a", "a", "a", "a", "b"].map(ask), [
    "admitted",
    "admitted",
    "admitted",
    "refused",
    "admitted",
  ]);
  await clock.advance(500);
  assert.deepEqual(["a", "a"].map(ask), ["admitted", "refused"]);
});

Deno.test("enter() bounds calls under way, by peer and in total, and takes a place back once", () => {
  const limits = createPeerLimits(createFakeClock(), {
    perSecond: 9,
    burst: 99,
    concurrent: 2,
    total: 3,
  });
  const first = limits.enter("a");
  assert.equal(limits.enter("a").kind, "admitted");
  assert.equal(limits.enter("a").kind, "refused");
  assert.equal(limits.enter("b").kind, "admitted");
  assert.equal(limits.enter("c").kind, "refused");
  assert(first.kind === "admitted");
  first[Symbol.dispose]();
  first[Symbol.dispose]();
  assert.equal(limits.enter("a").kind, "admitted");
  assert.equal(limits.enter("c").kind, "refused");
});

Deno.test("pass() keeps order when one who waits gives up", async () => {
  const turnstile = createTurnstile();
  const order: string[] = [];
  const never = new AbortController().signal;
  const impatient = new AbortController();
  const { promise: open, resolve } = Promise.withResolvers<void>();
  const first = turnstile.pass(never, async () => {
    await open;
    order.push("first");
  });
  const second = turnstile.pass(impatient.signal, () => Promise.resolve(order.push("second")));
  const third = turnstile.pass(never, () => Promise.resolve(order.push("third")));
  impatient.abort(new Error("enough"));
  await assert.rejects(second, /enough/);
  assert.deepEqual(order, []);
  resolve();
  await Promise.all([first, third]);
  assert.deepEqual(order, ["first", "third"]);
  assert.equal(turnstile.length, 0);
});

Deno.test("pass() lets the next one in when a task fails", async () => {
  const turnstile = createTurnstile();
  const never = new AbortController().signal;
  await assert.rejects(turnstile.pass(never, () => Promise.reject(new Error("no"))), /no/);
  assert.equal(await turnstile.pass(never, () => Promise.resolve(7)), 7);
});
