import assert from "node:assert/strict";
import { untilAborted } from "../../lib/abortable.ts";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { createSelfTests } from "./self_tests.ts";

const never = new AbortController().signal;

Deno.test("createSelfTests() knows nothing before the first run, and says so", () => {
  const tests = createSelfTests([{ name: "nats", run: () => Promise.resolve("2.15") }], {
    clock: createFakeClock(),
  });
  assert.deepEqual(tests.list().map(({ name, state, at }) => [name, state, at]), [
    ["nats", "unknown", null],
  ]);
});

Deno.test("createSelfTests() keeps what each found, also when another fails", async () => {
  const tests = createSelfTests([
    { name: "nats", run: () => Promise.resolve("2.15.2") },
    { name: "gitea", run: () => Promise.reject(new Error("Ask Gitea: 401")) },
  ], { clock: createFakeClock() });
  await tests.run(never);
  assert.deepEqual(tests.list().map(({ state, detail }) => [state, detail]), [
    ["ok", "2.15.2"],
    ["failed", "Ask Gitea: 401"],
  ]);
});

Deno.test("createSelfTests() gives up on one that does not answer, after ten seconds", async () => {
  const clock = createFakeClock();
  const tests = createSelfTests([{
    name: "spire",
    run: untilAborted,
  }], { clock });
  const done = tests.run(never);
  assert.equal(tests.list()[0]?.state, "running");
  await clock.advance(10_000);
  await done;
  assert.equal(tests.list()[0]?.detail, "no answer within 10 s");
});

Deno.test("createSelfTests() joins a run that goes on already", async () => {
  let runs = 0;
  const tests = createSelfTests([{
    name: "nats",
    run: () => {
      runs++;
      return Promise.resolve("");
    },
  }], { clock: createFakeClock() });
  await Promise.all([tests.run(never), tests.run(never)]);
  assert.equal(runs, 1);
});

Deno.test("createSelfTests() gives up on one that does not heed its signal, and can be run again", async () => {
  const clock = createFakeClock();
  let runs = 0;
  const tests = createSelfTests([{
    name: "nats",
    run: () => ++runs === 1 ? new Promise(() => {}) : Promise.resolve("2.15"),
  }], { clock });
  const done = tests.run(never);
  await clock.advance(10_000);
  await done;
  assert.equal(tests.list()[0]?.detail, "no answer within 10 s");
  await tests.run(never);
  assert.equal(tests.list()[0]?.detail, "2.15");
});

Deno.test("createSelfTests() lets who has joined a run go with their own signal", async () => {
  const clock = createFakeClock();
  const tests = createSelfTests([{ name: "nats", run: untilAborted }], { clock });
  const begun = tests.run(never);
  const stop = new AbortController();
  const joined = tests.run(stop.signal);
  stop.abort();
  await joined;
  assert.equal(tests.list()[0]?.state, "running");
  await clock.advance(10_000);
  await begun;
});
