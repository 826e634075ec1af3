import assert from "node:assert/strict";
import { aborted } from "./abortable.ts";
import { together } from "./together.ts";

const never = new AbortController().signal;

Deno.test("together() resolves when each has ended", async () => {
  const ended: number[] = [];
  const after = (turns: number) => async () => {
    for (let turn = 0; turn < turns; turn++) await Promise.resolve();
    ended.push(turns);
  };
  await together([after(3), after(1), after(2)], never);
  assert.deepEqual(ended, [1, 2, 3]);
});

Deno.test("together() stops the others when one fails, waits for their end, and throws the failure", async () => {
  for (const first of [true, false]) {
    let ended = false;
    const slow = async (signal: AbortSignal) => {
      await aborted(signal);
      await Promise.resolve();
      ended = true;
    };
    const fails = () => Promise.reject(new Error("no disk"));
    const tasks = first ? [fails, slow] : [slow, fails];
    await assert.rejects(together(tasks, never), /^Error: no disk$/);
    assert.ok(ended);
  }
});

Deno.test("together() stops all with the caller's signal", async () => {
  const stop = new AbortController();
  const all = together([(signal) => aborted(signal), (signal) => aborted(signal)], stop.signal);
  stop.abort();
  await all;
});
