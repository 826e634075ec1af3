import assert from "node:assert/strict";
import { createFakeClock } from "../lib/fake_clock.ts";
import { watchStop } from "./stop.ts";

function setup() {
  const clock = createFakeClock();
  const told: string[] = [];
  const stop = new AbortController();
  const over = new AbortController();
  const ended = Promise.withResolvers<{ code: number; signal: string | null }>();
  const watch = watchStop({
    stop: stop.signal,
    facade: {
      terminating(why) {
        told.push(`facade ${why}`);
        return Promise.resolve({ kind: "accepted", value: undefined });
      },
    },
    outbox: { terminating: (why) => void told.push(`outbox ${why}`) },
    clock,
    graceMs: 10_000,
  });
  const running = watch.run({
    ended: ended.promise,
    terminate: () => void told.push("terminate"),
    endOrphans: () => Promise.resolve(void told.push("orphans")),
    kill: () => void told.push("kill"),
  }, over.signal).catch((error) => error);
  return {
    clock,
    told,
    stop,
    ended,
    watch,
    running,
    async [Symbol.asyncDispose]() {
      over.abort(new Error("test over"));
      await running;
      watch[Symbol.dispose]();
    },
  };
}

Deno.test("run() tells the facade first, then the runner, and kills it before the grace period ends", async () => {
  await using it = setup();
  it.stop.abort("node shutdown");
  await it.clock.advance(0);
  const first = ["outbox node shutdown", "facade node shutdown", "terminate"];
  assert.deepEqual(it.told, first);
  await it.clock.advance(5_999);
  assert.deepEqual(it.told, first);
  await it.clock.advance(1);
  assert.deepEqual(it.told, [...first, "orphans"]);
  await it.clock.advance(1_500);
  assert.deepEqual(it.told, [...first, "orphans", "kill"]);
  assert.ok(!it.watch.over.aborted);
  await it.clock.advance(1_700);
  assert.ok(it.watch.over.aborted);
});

Deno.test("run() says nothing when the runner has ended before anybody asks", async () => {
  await using it = setup();
  it.ended.resolve({ code: 0, signal: null });
  assert.equal(await it.running, undefined);
  it.stop.abort("the executor got SIGTERM");
  await it.clock.advance(9_200);
  assert.deepEqual(it.told, ["outbox the executor got SIGTERM"]);
  assert.ok(it.watch.over.aborted, "the delivery still ends in time");
});
