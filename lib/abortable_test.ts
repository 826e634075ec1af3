import assert from "node:assert/strict";
import { abortable } from "./abortable.ts";

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
