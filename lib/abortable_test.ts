import assert from "node:assert/strict";
import { abortable, aborted, onAbort, untilAborted } from "./abortable.ts";

Deno.test("onAbort() acts once, whether the abort comes or was there before, and not after disposal", () => {
  const acts: string[] = [];
  const stop = new AbortController();
  onAbort(stop.signal, () => acts.push("later"));
  {
    using _over = onAbort(stop.signal, () => acts.push("disposed"));
  }
  assert.equal(acts.length, 0);
  stop.abort();
  assert.deepEqual(acts, ["later"]);
  using _late = onAbort(stop.signal, () => acts.push("at once"));
  assert.deepEqual(acts, ["later", "at once"]);
});

Deno.test("untilAborted() rejects with the signal's reason, also with one of before", async () => {
  const stop = new AbortController();
  const waiting = untilAborted(stop.signal);
  stop.abort(new Error("stopped"));
  await assert.rejects(waiting, /stopped/);
  await assert.rejects(untilAborted(stop.signal), /stopped/);
});

Deno.test("abortable() gives what the work gives while nobody aborts", async () => {
  const { signal } = new AbortController();
  assert.equal(await abortable(Promise.resolve(1), signal), 1);
  await assert.rejects(abortable(Promise.reject(new Error("broken")), signal), /broken/);
});

Deno.test("abortable() rejects with the signal's reason when that comes first, or was there before", async () => {
  const stop = new AbortController();
  const work = Promise.withResolvers<number>();
  const waiting = abortable(work.promise, stop.signal);
  stop.abort(new Error("stopped"));
  await assert.rejects(waiting, /stopped/);
  await assert.rejects(abortable(Promise.resolve(1), stop.signal), /stopped/);
  // Nobody waits for it now: this must not become an unhandled rejection.
  work.reject(new Error("too late"));
  await Promise.resolve();
});

Deno.test("aborted() resolves at the event, and rejects with the signal's reason when that comes first", async () => {
  const event = new AbortController();
  const stop = new AbortController();
  const waiting = aborted(event.signal, stop.signal);
  event.abort(new Error("it happened"));
  await waiting;
  await aborted(event.signal, stop.signal);
  await aborted(event.signal);
  const never = aborted(new AbortController().signal, stop.signal);
  stop.abort(new Error("stopped"));
  await assert.rejects(never, /stopped/);
  await assert.rejects(aborted(event.signal, stop.signal), /stopped/);
});
