import assert from "node:assert/strict";
import type { LeaseRecord } from "../../controller/leadership/lease.ts";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { createFakeLeaseServer, type Route } from "../fakes/lease_server.ts";
import { contend, type Contender } from "../support/lease_contender.ts";
import { fc } from "../support/property.ts";

/** Something that happens to contender number `who`. */
type Event =
  | { readonly kind: "freeze"; readonly who: number; readonly forMs: number }
  | { readonly kind: "jump"; readonly who: number; readonly ms: number }
  | { readonly kind: "kill"; readonly who: number }
  | { readonly kind: "stop"; readonly who: number }
  | { readonly kind: "cut"; readonly who: number; readonly forMs: number }
  | { readonly kind: "slow"; readonly who: number; readonly ms: number; readonly forMs: number }
  | { readonly kind: "lose"; readonly who: number; readonly answers: number }
  | { readonly kind: "deaf"; readonly forMs: number }
  | { readonly kind: "delete" }
  | { readonly kind: "wait"; readonly ms: number };

const CONTENDERS = 3;
const who = fc.nat({ max: CONTENDERS - 1 });
const forMs = fc.integer({ min: 100, max: 30_000 });

/** Random, but the same for a seed. */
function randomOf(seed: number): () => number {
  let state = seed >>> 0 || 1;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Plays events on contenders that are started anew whenever they end; asserts at every moment. */
async function play(events: readonly Event[], seed: number): Promise<void> {
  // Microtasks only: nothing here waits for the real world.
  const clock = createFakeClock(undefined, async () => {
    for (let i = 0; i < 40; i++) await Promise.resolve();
  });
  const server = createFakeLeaseServer(clock);
  const random = randomOf(seed);
  const ill = Array.from(
    { length: CONTENDERS },
    () => ({ cutUntil: 0, slowMs: 0, slowUntil: 0, lose: 0 }),
  );
  const contenders: Contender[] = [];
  const all: Contender[] = [];
  let born = 0;
  const start = (i: number) => {
    const state = ill[i] ?? assert.fail();
    const route = (write: boolean): Route => {
      const now = clock.monotonic();
      if (now < state.cutUntil) return { thereMs: 0, backMs: 0, lost: "nothing" };
      const most = now < state.slowUntil ? state.slowMs : 20;
      const lost = write && state.lose > 0 ? "stored" : "no";
      if (lost === "stored") state.lose--;
      return { thereMs: random() * most, backMs: random() * most, lost };
    };
    const made = contend({ clock, server }, `host${i}_${born++}`, { route, random });
    contenders[i] = made;
    all.push(made);
  };

  // Kept: thrown in there, it would be a failed request.
  const wrong: string[] = [];
  let transitions = -1;
  server.onWrite = (now: LeaseRecord, before: LeaseRecord | undefined) => {
    const takeOver = now.holder !== "" && now.holder !== before?.holder;
    // A leader may make a deleted Lease anew with the number that it had.
    const raised = now.transitions === transitions + 1 ||
      before === undefined && now.transitions === transitions;
    if (takeOver ? !raised : now.transitions !== transitions) {
      wrong.push(`transitions ${transitions}, then ${now.transitions} by "${now.holder}"`);
    }
    transitions = now.transitions;
    if (!takeOver) return;
    for (const other of all) {
      if (other.self !== now.holder && other.acts()) {
        wrong.push(`"${other.self}" acts still when "${now.holder}" has the Lease`);
      }
    }
  };
  const onlyOne = () => {
    const acting = all.filter((c) => c.acts()).map((c) => c.self);
    if (acting.length > 1) wrong.push(`${acting} act at the same time`);
  };
  const pass = async (ms: number) => {
    for (let left = ms; left > 0; left -= 250) {
      await clock.advance(Math.min(left, 250));
      onlyOne();
      assert.deepEqual(wrong, []);
      // A process that has lost is started again by Kubernetes.
      contenders.forEach((contender, i) => {
        if (contender.lost.length > 0 && !contender.clock.frozen) start(i);
      });
    }
  };

  for (let i = 0; i < CONTENDERS; i++) start(i);
  await pass(5_000);
  const later: Promise<unknown>[] = [];
  for (const event of events) {
    if (event.kind === "wait") {
      await pass(event.ms);
      continue;
    }
    if (event.kind === "delete") {
      server.delete();
      continue;
    }
    if (event.kind === "deaf") {
      server.silent = true;
      later.push(clock.sleep(event.forMs).then(() => void (server.silent = false)));
      continue;
    }
    const contender = contenders[event.who] ?? assert.fail();
    const state = ill[event.who] ?? assert.fail();
    switch (event.kind) {
      case "freeze":
        contender.clock.freeze();
        later.push(
          clock.sleep(event.forMs).then(() => {
            contender.clock.thaw();
            onlyOne();
          }),
        );
        break;
      case "jump":
        contender.clock.jump(event.ms);
        break;
      case "kill":
        contender.kill();
        start(event.who);
        break;
      case "stop":
        if (contender.clock.frozen) break;
        later.push(contender.stop());
        start(event.who);
        break;
      case "cut":
        state.cutUntil = clock.monotonic() + event.forMs;
        break;
      case "slow":
        state.slowMs = event.ms;
        state.slowUntil = clock.monotonic() + event.forMs;
        break;
      case "lose":
        state.lose = event.answers;
        break;
      default:
        event satisfies never;
    }
  }
  // Everything heals; then one leads, and goes on.
  await pass(32_000);
  for (const state of ill) Object.assign(state, { cutUntil: 0, slowUntil: 0, lose: 0 });
  await pass(40_000);
  await Promise.all(later);
  const leader = all.filter((c) => c.acts());
  assert.equal(leader.length, 1, "nobody leads though all is well");
  await pass(30_000);
  assert.ok(leader[0]?.acts());
}

const disturbances = [
  fc.record({ kind: fc.constant("freeze" as const), who, forMs }),
  fc.record({
    kind: fc.constant("jump" as const),
    who,
    ms: fc.constantFrom(-3_600_000, -2_000, 2_000, 3_600_000),
  }),
  fc.record({ kind: fc.constant("cut" as const), who, forMs }),
  fc.record({
    kind: fc.constant("slow" as const),
    who,
    ms: fc.integer({ min: 50, max: 8_000 }),
    forMs,
  }),
  fc.record({ kind: fc.constant("lose" as const), who, answers: fc.integer({ min: 1, max: 4 }) }),
  fc.record({ kind: fc.constant("deaf" as const), forMs }),
] as const;
const waits = fc.record({
  kind: fc.constant("wait" as const),
  ms: fc.integer({ min: 0, max: 20_000 }),
});

Deno.test("electors: never two act, transitions without a gap, and one leads in the end", async () => {
  const event: fc.Arbitrary<Event> = fc.oneof(
    ...disturbances,
    fc.record({ kind: fc.constant("kill" as const), who }),
    fc.record({ kind: fc.constant("stop" as const), who }),
    waits,
    waits,
    waits,
  );
  await fc.assert(
    fc.asyncProperty(fc.array(event, { maxLength: 30 }), fc.nat(), play),
    { numRuns: 60 },
  );
});

Deno.test("electors that have seen the holder: never two act although the Lease is deleted", async () => {
  // A process that sees no Lease at its start cannot know that there was one: no kills and stops here.
  const event: fc.Arbitrary<Event> = fc.oneof(
    ...disturbances.filter((_, i) => i === 1 || i === 5),
    fc.record({
      kind: fc.constant("slow" as const),
      who,
      ms: fc.integer({ min: 50, max: 900 }),
      forMs,
    }),
    fc.record({
      kind: fc.constant("freeze" as const),
      who,
      forMs: fc.integer({ min: 100, max: 7_000 }),
    }),
    fc.record({ kind: fc.constant("delete" as const) }),
    waits,
    waits,
  );
  await fc.assert(
    fc.asyncProperty(fc.array(event, { maxLength: 30 }), fc.nat(), play),
    { numRuns: 30 },
  );
});
