import assert from "node:assert/strict";
import { BackendError } from "../../controller/backend.ts";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { call } from "../../tests/support/calls.ts";
import { refusal } from "../../tests/support/rejections.ts";
import { createCreateLimiter } from "./create_limiter.ts";
import { SandboxError } from "./sandboxes.ts";

const FULL = new SandboxError("pool_full", "no available pod", { retryAfterMs: 30_000 });
const AWAY = new SandboxError("unreachable", "connection refused");

function setup() {
  const clock = createFakeClock();
  const options = { pool: "ci-vm", perSecond: 2, clock, logger: silentLogger };
  return { clock, limiter: createCreateLimiter(options) };
}

/** Two creates that have been let through. */
async function twoUnderWay() {
  const world = setup();
  const first = await world.limiter.take("Make", call);
  const waiting = world.limiter.take("Make", call);
  await world.clock.advance(500);
  return { ...world, first, second: await waiting };
}

Deno.test("take() lets two a second pass, however many come", async () => {
  const { clock, limiter } = setup();
  const at: number[] = [];
  const all = Array.from({ length: 9 }, async () => {
    (await limiter.take("Make", call)).succeeded();
    at.push(clock.monotonic());
  });
  await clock.advance(4_000);
  await Promise.all(all);
  assert.deepEqual(at, [0, 500, 1000, 1500, 2000, 2500, 3000, 3500, 4000]);
});

Deno.test("take() refuses at once while a full pool rests, for as long as the server says", async () => {
  const { clock, limiter } = setup();
  (await limiter.take("Make", call)).failed(FULL);
  await clock.advance(29_000);
  const error = await refusal(limiter.take('Make executor "x"', call));
  assert.equal(error.code, "quota");
  assert.equal(
    error.message,
    'Make executor "x": not tried: pool "ci-vm" is asked again in 1 s: no available pod',
  );
  await clock.advance(1_000);
  (await limiter.take("Make", call)).succeeded();
});

Deno.test("freed() ends the rest of a full pool, and no other", async () => {
  const { clock, limiter } = setup();
  (await limiter.take("Make", call)).failed(FULL);
  limiter.freed();
  await clock.advance(500);
  (await limiter.take("Make", call)).failed(AWAY);
  limiter.freed();
  assert.equal((await refusal(limiter.take("Make", call))).code, "refused");
});

Deno.test("take() tries one after a rest, and rests twice as long when that fails", async () => {
  const { clock, limiter } = setup();
  const waits: number[] = [];
  (await limiter.take("Make", call)).failed(AWAY);
  for (let round = 0; round < 7; round++) {
    const since = clock.monotonic();
    while (true) {
      try {
        const permit = await limiter.take("Make", call);
        await refusal(limiter.take("Make", call)); // Only one is tried.
        permit.failed(AWAY);
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
  const { clock, limiter } = setup();
  const first = await limiter.take("Make", call);
  const waiting = [1, 2, 3].map(() => refusal(limiter.take("Make", call)));
  first.failed(AWAY);
  await clock.advance(2_000);
  assert.deepEqual((await Promise.all(waiting)).map(({ code }) => code), [
    "refused",
    "refused",
    "refused",
  ]);
});

Deno.test("what concerns one executor alone keeps nobody else waiting", async () => {
  const { clock, limiter } = setup();
  (await limiter.take("Make", call)).failed(new SandboxError("start_failed", "crashed"));
  await clock.advance(500);
  (await limiter.take("Make", call)).failed(new SandboxError("invalid", "label"));
  await clock.advance(500);
  (await limiter.take("Make", call)).succeeded();
});

Deno.test("an aborted trial gives its turn to the next", async () => {
  const { clock, limiter } = setup();
  (await limiter.take("Make", call)).failed(AWAY);
  await clock.advance(1_000);
  const aborted = { signal: AbortSignal.abort(new Error("stopped")) };
  await assert.rejects(limiter.take("Make", aborted), /stopped/);
  await clock.advance(500);
  (await limiter.take("Make", call)).succeeded();
});

Deno.test("a create that was let through before the rest ends it when it works", async () => {
  const { clock, limiter, first, second } = await twoUnderWay();
  first.failed(AWAY);
  second.succeeded();
  await clock.advance(500);
  (await limiter.take("Make", call)).succeeded();
});

Deno.test("a create that fails beside the trial is no trial: the rest is no longer, and one is tried", async () => {
  const { clock, limiter, first, second } = await twoUnderWay();
  first.failed(AWAY);
  await clock.advance(1_000);
  const trial = await limiter.take("Make", call);
  second.failed(AWAY);
  await refusal(limiter.take("Make", call));
  trial.dropped();
  await clock.advance(1_000);
  (await limiter.take("Make", call)).succeeded();
});

Deno.test("freed() during the trial of a full pool lets the next one through when that is dropped", async () => {
  const { clock, limiter } = setup();
  (await limiter.take("Make", call)).failed(FULL);
  await clock.advance(30_000);
  const trial = await limiter.take("Make", call);
  limiter.freed();
  await refusal(limiter.take("Make", call));
  trial.dropped();
  await clock.advance(500);
  (await limiter.take("Make", call)).succeeded();
});
