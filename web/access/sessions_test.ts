import assert from "node:assert/strict";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { Secret } from "../../lib/secret.ts";
import { createSoleSignOuts } from "../../tests/fakes/sign_outs.ts";
import { createSeal } from "./seal.ts";
import { createSessions, SESSION_MS } from "./sessions.ts";

const OLD = new Secret("o".repeat(32));
const NEW = new Secret("n".repeat(32));
const ALICE = { name: "alice", role: "operator" } as const;

Deno.test("read() knows a session for eight hours, and not at their end", async () => {
  const clock = createFakeClock();
  const sessions = createSessions({
    clock,
    seal: createSeal([NEW], ""),
    signOuts: createSoleSignOuts(),
  });
  const text = sessions.begin(ALICE);
  await clock.advance(SESSION_MS - 1);
  assert.deepEqual(sessions.read(text)?.actor, ALICE);
  await clock.advance(1);
  assert.equal(sessions.read(text), undefined);
});

Deno.test("open() takes what an older key has sealed, and nothing of another use or configuration", () => {
  const text = createSeal([OLD], "a").seal("session", { x: 1 });
  assert.deepEqual(createSeal([NEW, OLD], "a").open("session", text), { x: 1 });
  assert.equal(createSeal([NEW], "a").open("session", text), undefined);
  assert.equal(createSeal([OLD], "b").open("session", text), undefined);
  assert.equal(createSeal([OLD], "a").open("sign-in", text), undefined);
});

Deno.test("end() tells others a hash of the session alone, and nothing of one that is nobody's", async () => {
  const clock = createFakeClock();
  const told: (readonly [hash: string, endsAt: number])[] = [];
  const signOuts = {
    has: () => false,
    end(hash: string, endsAt: number) {
      told.push([hash, endsAt]);
      return Promise.resolve("here" as const);
    },
  };
  const seal = createSeal([NEW], "");
  const sessions = createSessions({ clock, seal, signOuts });
  const text = sessions.begin(ALICE);
  assert.equal(await sessions.end(text), "here");
  const [[hash, endsAt] = ["", 0]] = told;
  assert.match(hash, /^[A-Za-z0-9_-]{43}$/);
  assert.equal(endsAt, clock.now() + SESSION_MS);
  const content = JSON.stringify(seal.open("session", text));
  assert.equal(content.includes(hash) || text.includes(hash), false);
  assert.equal(await sessions.end("forged"), "shared");
  assert.equal(told.length, 1);
});
