import assert from "node:assert/strict";
import { GiteaError } from "../../controller/gitea.ts";
import { abortable } from "../../lib/abortable.ts";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { callWithin } from "./call.ts";

const attempt = { action: "fetch a task from", url: "https://gitea.example.org" };

function setup() {
  const clock = createFakeClock();
  const answer = Promise.withResolvers<string>();
  const caller = new AbortController();
  const called = callWithin((signal) => abortable(answer.promise, signal), {
    attempt,
    deadlineMs: 10_000,
    clock,
    signal: caller.signal,
  });
  let outcome = "open";
  const ended = called.then((value) => outcome = value, (error) => {
    outcome = error instanceof GiteaError ? error.code : String(error);
  });
  return { clock, answer, caller, ended, outcome: () => outcome };
}

Deno.test("callWithin() rejects at its deadline", async () => {
  const t = setup();
  await t.clock.advance(9_999);
  assert.equal(t.outcome(), "open");
  await t.clock.advance(1);
  assert.equal(t.outcome(), "unavailable");
  assert.equal(t.clock.pending, 0);
});

Deno.test("callWithin() takes the answer that came while the process was stopped past the deadline", async () => {
  const t = setup();
  t.clock.leap(20_000);
  // The timer fires first.
  await t.clock.advance(0);
  assert.equal(t.outcome(), "open");
  t.answer.resolve("a task");
  await t.ended;
  assert.equal(t.outcome(), "a task");
  await t.clock.advance(0);
  assert.equal(t.clock.pending, 0);
});

Deno.test("callWithin() waits 2 s for it, no longer, and not for a caller that has gone", async () => {
  const late = setup();
  late.clock.leap(20_000);
  await late.clock.advance(1_999);
  assert.equal(late.outcome(), "open");
  await late.clock.advance(1);
  assert.equal(late.outcome(), "unavailable");
  const gone = setup();
  gone.clock.leap(20_000);
  await gone.clock.advance(0);
  gone.caller.abort(new Error("gone"));
  await gone.ended;
  assert.equal(gone.outcome(), "Error: gone");
});

Deno.test("callWithin() rejects at its deadline although the operation does not heed it", async () => {
  const clock = createFakeClock();
  const { signal } = new AbortController();
  const never = Promise.withResolvers<void>();
  const called = callWithin(() => never.promise, { attempt, deadlineMs: 10_000, clock, signal });
  let outcome = "open";
  called.catch((error) => outcome = error instanceof GiteaError ? error.code : String(error));
  await clock.advance(10_000);
  assert.equal(outcome, "unavailable");
});
