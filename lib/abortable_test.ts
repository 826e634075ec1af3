import assert from "node:assert/strict";
import { abortable, aborted } from "./abortable.ts";

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
  const never = aborted(new AbortController().signal, stop.signal);
  stop.abort(new Error("stopped"));
  await assert.rejects(never, /stopped/);
  await assert.rejects(aborted(event.signal, stop.signal), /stopped/);
});
