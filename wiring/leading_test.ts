import assert from "node:assert/strict";
import { aborted } from "../lib/abortable.ts";
import { actWhileLeading } from "./leading.ts";

Deno.test("actWhileLeading() stops what acts when the lead cannot be held, and waits for its end", async () => {
  const told: string[] = [];
  const failure = Promise.withResolvers<void>();
  const acting = actWhileLeading({ hold: () => failure.promise }, async (signal) => {
    told.push("acts");
    await aborted(signal);
    told.push("ends");
  }, new AbortController().signal);
  failure.reject(new Error("the key cannot be written"));
  await assert.rejects(acting, /^Error: the key cannot be written$/);
  assert.deepEqual(told, ["acts", "ends"]);
});

Deno.test("actWhileLeading() holds the lead until what acts has ended, however it ends", async () => {
  for (const fails of [true, false]) {
    const told: string[] = [];
    const stop = new AbortController();
    const end = Promise.withResolvers<void>();
    const acting = actWhileLeading({
      async hold(signal) {
        await aborted(signal);
        told.push("given back");
      },
    }, async (signal) => {
      await aborted(signal);
      await end.promise.finally(() => told.push("ended"));
    }, stop.signal);
    stop.abort();
    if (fails) end.reject(new Error("no disk"));
    else end.resolve();
    await (fails ? assert.rejects(acting, /^Error: no disk$/) : acting);
    assert.deepEqual(told, ["ended", "given back"]);
  }
});
