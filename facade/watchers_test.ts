import assert from "node:assert/strict";
import { createWatchers } from "./watchers.ts";

Deno.test("next() wakes all who wait for that key, once, and nobody else", async () => {
  const watchers = createWatchers<string>();
  const { signal } = new AbortController();
  const woken: string[] = [];
  const wait = (key: string, who: string) =>
    watchers.next(key, signal).then(() => void woken.push(who));
  const both = Promise.all([wait("a", "first"), wait("a", "second")]);
  const other = wait("b", "other");
  watchers.changed("a");
  await both;
  assert.deepEqual(woken.toSorted(), ["first", "second"]);
  const again = wait("a", "again");
  watchers.changed("b");
  await other;
  assert.equal(woken.includes("again"), false);
  watchers.changed("a");
  await again;
});

Deno.test("next() resolves when aborted, also before", async () => {
  const watchers = createWatchers<string>();
  const stop = new AbortController();
  const waiting = watchers.next("a", stop.signal);
  stop.abort();
  await waiting;
  await watchers.next("a", stop.signal);
});
