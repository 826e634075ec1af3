import assert from "node:assert/strict";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { createPace } from "./pace.ts";

Deno.test("createPace() lets one begin a second, whoever asks, in order", async () => {
  const clock = createFakeClock();
  const pace = createPace(clock, 1_000);
  const { signal } = new AbortController();
  const began: string[] = [];
  const since = clock.monotonic();
  const ask = (who: string) =>
    pace(signal).then(() => void began.push(`${who} ${clock.monotonic() - since}`));
  const all = [ask("a"), ask("b"), ask("c")];
  await clock.advance(5_000);
  all.push(ask("d"));
  await Promise.all(all);
  assert.deepEqual(began, ["a 0", "b 1000", "c 2000", "d 5000"]);
});

Deno.test("createPace() ends the wait of one that is aborted, and of no other", async () => {
  const clock = createFakeClock();
  const pace = createPace(clock, 1_000);
  const stop = new AbortController();
  const { signal } = new AbortController();
  await pace(signal);
  const aborted = assert.rejects(pace(stop.signal), /enough/);
  const other = pace(signal);
  stop.abort(new Error("enough"));
  await aborted;
  await assert.rejects(pace(stop.signal), /enough/);
  await clock.advance(2_000);
  await other;
});
