import assert from "node:assert/strict";
import { createCondition } from "./condition.ts";

const { signal } = new AbortController();

Deno.test("notifyAll() wakes all who wait, and who comes later waits for the next", async () => {
  const condition = createCondition();
  const woken: string[] = [];
  const wait = (who: string) => condition.wait(signal).then(() => woken.push(who));
  condition.notifyAll();
  const early = [wait("a"), wait("b")];
  condition.notifyAll();
  const late = wait("c");
  await Promise.all(early);
  assert.deepEqual(woken, ["a", "b"]);
  condition.notifyAll();
  await late;
});

Deno.test("wait() rejects with the signal's reason, also with one of before", async () => {
  const condition = createCondition();
  const stop = new AbortController();
  const waiting = condition.wait(stop.signal);
  stop.abort(new Error("stopped"));
  await assert.rejects(waiting, /stopped/);
  await assert.rejects(condition.wait(stop.signal), /stopped/);
});
