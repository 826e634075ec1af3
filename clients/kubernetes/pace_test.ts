import assert from "node:assert/strict";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { createPace } from "./pace.ts";

const { signal } = new AbortController();

Deno.test("createPace() lets one begin a second after the one before has ended, in order", async () => {
  const clock = createFakeClock();
  const pace = createPace(clock, 1_000);
  const since = clock.monotonic();
  const began: string[] = [];
  const work = (name: string, ms: number) =>
    pace(async () => {
      began.push(`${name} ${clock.monotonic() - since}`);
      if (ms > 0) await clock.sleep(ms);
      return name;
    }, signal);
  const all = [work("a", 500), work("b", 0), work("c", 0)];
  for (let step = 0; step < 10; step++) await clock.advance(500);
  all.push(work("d", 0));
  assert.deepEqual(await Promise.all(all), ["a", "b", "c", "d"]);
  assert.deepEqual(began, ["a 0", "b 1500", "c 2500", "d 5000"]);
});

Deno.test("createPace() goes on after one that fails, and after one that is aborted while it waits", async () => {
  const clock = createFakeClock();
  const pace = createPace(clock, 1_000);
  const stop = new AbortController();
  await assert.rejects(pace(() => Promise.reject(new Error("no")), signal), /no/);
  const aborted = pace(() => Promise.resolve(assert.fail("it was aborted")), stop.signal);
  const next = pace(() => Promise.resolve("next"), signal);
  stop.abort(new Error("enough"));
  await assert.rejects(aborted, /enough/);
  await clock.advance(1_000);
  assert.equal(await next, "next");
});
