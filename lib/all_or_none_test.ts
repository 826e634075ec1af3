import assert from "node:assert/strict";
import { untilAborted } from "./abortable.ts";
import { allOrNone } from "./all_or_none.ts";

const never = new AbortController().signal;

Deno.test("allOrNone() gives both results", async () => {
  const both = [() => Promise.resolve(1), () => Promise.resolve("b")] as const;
  assert.deepEqual(await allOrNone(both, never), [1, "b"]);
});

Deno.test("allOrNone() stops the other when one fails, waits for its end, and throws the first failure", async () => {
  let ended = false;
  const slow = async (signal: AbortSignal) => {
    try {
      return await untilAborted(signal);
    } finally {
      await Promise.resolve();
      ended = true;
    }
  };
  const fails = () => Promise.reject(new Error("no disk"));
  await assert.rejects(allOrNone([fails, slow], never), /^Error: no disk$/);
  assert.equal(ended, true);
  ended = false;
  await assert.rejects(allOrNone([slow, fails], never), /^Error: no disk$/);
  assert.equal(ended, true);
});

Deno.test("allOrNone() throws the caller's reason when that aborts", async () => {
  const stop = new AbortController();
  const both = allOrNone([untilAborted, untilAborted], stop.signal);
  stop.abort(new Error("stopped"));
  await assert.rejects(both, /^Error: stopped$/);
});
