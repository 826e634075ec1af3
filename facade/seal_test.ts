import assert from "node:assert/strict";
import { GiteaError } from "../controller/gitea.ts";
import { createFakeClock } from "../lib/fake_clock.ts";
import { sealPatiently } from "./seal.ts";

/** A relay whose seal fails with `errors`, one after the other, and then succeeds. */
function relayThatFails(...errors: Error[]) {
  const tries: number[] = [];
  const clock = createFakeClock();
  const relay = {
    seal() {
      tries.push(clock.monotonic());
      const error = errors.shift();
      return error === undefined ? Promise.resolve() : Promise.reject(error);
    },
  };
  return { relay, clock, tries };
}

const away = () => new GiteaError("unavailable", "Seal the log: no answer");

Deno.test("sealPatiently() tries again while Gitea is away, and waits longer each time", async () => {
  const { relay, clock, tries } = relayThatFails(away(), away());
  const { signal } = new AbortController();
  const sealing = sealPatiently(relay, { clock, random: () => 1, signal });
  await clock.advance(1_000);
  await clock.advance(2_000);
  await sealing;
  assert.deepEqual(tries, [0, 1_000, 3_000]);
});

Deno.test("sealPatiently() gives up at once on what no repetition changes", async () => {
  const { relay, clock, tries } = relayThatFails(new Error("a bug"));
  const { signal } = new AbortController();
  await assert.rejects(sealPatiently(relay, { clock, signal }), /a bug/);
  assert.equal(tries.length, 1);
});

Deno.test("sealPatiently() gives up after an hour, and when it is stopped", async () => {
  const long = relayThatFails(...Array.from({ length: 1_000 }, away));
  const stop = new AbortController();
  const { clock } = long;
  const over = assert.rejects(
    sealPatiently(long.relay, { clock, random: () => 1, signal: stop.signal }),
    { name: "TimeoutError" },
  );
  await clock.advance(3_600_000);
  await over;
  assert.ok(long.tries.length > 50);
  stop.abort(new Error("stopped"));
  const { relay } = relayThatFails();
  await assert.rejects(sealPatiently(relay, { clock, signal: stop.signal }), /stopped/);
});
