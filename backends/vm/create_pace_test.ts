import assert from "node:assert/strict";
import { BackendError } from "../../controller/backend.ts";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { call } from "../../tests/support/calls.ts";
import { refusal } from "../../tests/support/rejections.ts";
import { createPace } from "./create_pace.ts";
import { SandboxError } from "./sandboxes.ts";

const FULL = new SandboxError("pool_full", "no available pod", { retryAfterMs: 30_000 });
const AWAY = new SandboxError("unreachable", "connection refused");

function setup() {
  const clock = createFakeClock();
  return { clock, pace: createPace({ pool: "ci-vm", clock, logger: silentLogger }) };
}

Deno.test("take() lets two a second pass, however many come", async () => {
  const { clock, pace } = setup();
  const at: number[] = [];
  const all = Array.from({ length: 9 }, async () => {
    (await pace.take("Make", call)).succeeded();
    at.push(clock.monotonic());
  });
  await clock.advance(4_000);
  await Promise.all(all);
  assert.deepEqual(at, [0, 500, 1000, 1500, 2000, 2500, 3000, 3500, 4000]);
});

Deno.test("take() refuses at once while a full pool rests, for as long as the server says", async () => {
  const { clock, pace } = setup();
  (await pace.take("Make", call)).failed(FULL);
  await clock.advance(29_000);
  const error = await refusal(pace.take('Make executor "x"', call));
  assert.equal(error.code, "quota");
  assert.equal(
    error.message,
    'Make executor "x": not tried: pool "ci-vm" is asked again in 1 s: no available pod',
  );
  await clock.advance(1_000);
  (await pace.take("Make", call)).succeeded();
});

Deno.test("freed() ends the rest of a full pool, and no other", async () => {
  const { clock, pace } = setup();
  (await pace.take("Make", call)).failed(FULL);
  pace.freed();
  await clock.advance(500);
  (await pace.take("Make", call)).failed(AWAY);
  pace.freed();
  assert.equal((await refusal(pace.take("Make", call))).code, "refused");
});

Deno.test("take() tries one after a rest, and rests twice as long when that fails", async () => {
  const { clock, pace } = setup();
  const waits: number[] = [];
  (await pace.take("Make", call)).failed(AWAY);
  for (let round = 0; round < 7; round++) {
    const since = clock.monotonic();
    while (true) {
      try {
        const attempt = await pace.take("Make", call);
        await refusal(pace.take("Make", call)); // Only one is tried.
        attempt.failed(AWAY);
        break;
      } catch (error) {
        assert.ok(error instanceof BackendError);
        await clock.advance(500);
      }
    }
    waits.push(clock.monotonic() - since);
  }
  assert.deepEqual(waits, [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
});

Deno.test("those that wait for their turn are refused when one before them fails", async () => {
  const { clock, pace } = setup();
  const first = await pace.take("Make", call);
  const waiting = [1, 2, 3].map(() => refusal(pace.take("Make", call)));
  first.failed(AWAY);
  await clock.advance(2_000);
  assert.deepEqual((await Promise.all(waiting)).map(({ code }) => code), [
    "refused",
    "refused",
    "refused",
  ]);
});

Deno.test("what concerns one executor alone keeps nobody else waiting", async () => {
  const { clock, pace } = setup();
  (await pace.take("Make", call)).failed(new SandboxError("start_failed", "crashed"));
  await clock.advance(500);
  (await pace.take("Make", call)).failed(new SandboxError("invalid", "label"));
  await clock.advance(500);
  (await pace.take("Make", call)).succeeded();
});

Deno.test("an aborted trial gives its turn to the next", async () => {
  const { clock, pace } = setup();
  (await pace.take("Make", call)).failed(AWAY);
  await clock.advance(1_000);
  const aborted = { signal: AbortSignal.abort(new Error("stopped")) };
  await assert.rejects(pace.take("Make", aborted), /stopped/);
  await clock.advance(500);
  (await pace.take("Make", call)).succeeded();
});
