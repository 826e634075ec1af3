import assert from "node:assert/strict";
import { createRefetch } from "./refetch.ts";

function setup() {
  const gates: PromiseWithResolvers<string | undefined>[] = [];
  const taken: string[] = [];
  const timers: { readonly run: () => void; readonly ms: number }[] = [];
  const stop = new AbortController();
  let reads = 0;
  const refetch = createRefetch<string>({
    read() {
      reads++;
      const gate = Promise.withResolvers<string | undefined>();
      gates.push(gate);
      return gate.promise;
    },
    take: (data) => void taken.push(data),
    later: (run, ms) => void timers.push({ run, ms }),
    signal: stop.signal,
  });
  const settle = async () => {
    for (let turn = 0; turn < 5; turn++) await Promise.resolve();
  };
  return {
    refetch,
    taken,
    stop,
    reads: () => reads,
    async answer(data: string | undefined) {
      gates.shift()?.resolve(data);
      await settle();
    },
    /** Lets the pause pass; its length. */
    async pass() {
      const timer = timers.shift();
      timer?.run();
      await settle();
      return timer?.ms;
    },
  };
}

Deno.test("createRefetch() reads once at a time, and once more for what was wanted meanwhile", async () => {
  const t = setup();
  t.refetch();
  t.refetch();
  t.refetch();
  assert.equal(t.reads(), 1);
  await t.answer("first");
  assert.equal(t.reads(), 1);
  assert.equal(await t.pass(), 1_000);
  assert.equal(t.reads(), 2);
  await t.answer("second");
  await t.pass();
  assert.equal(t.reads(), 2, "nobody wants more");
  assert.deepEqual(t.taken, ["first", "second"]);
});

Deno.test("createRefetch() reads again until the page has come, though nothing else happens", async () => {
  const t = setup();
  t.refetch();
  for (let failed = 1; failed <= 3; failed++) {
    await t.answer(undefined);
    assert.equal(await t.pass(), 5_000);
    assert.equal(t.reads(), failed + 1);
  }
  await t.answer("at last");
  await t.pass();
  assert.equal(t.reads(), 4);
  assert.deepEqual(t.taken, ["at last"]);
});

Deno.test("createRefetch() reads nothing any more when the page is left", async () => {
  const t = setup();
  t.refetch();
  t.stop.abort();
  await t.answer(undefined);
  await t.pass();
  t.refetch();
  assert.equal(t.reads(), 1);
});
