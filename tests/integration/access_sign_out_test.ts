import assert from "node:assert/strict";
import { createSignOuts } from "../../controller/access/sign_outs.ts";
import { createFakeClock, type FakeClock } from "../../lib/fake_clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { createFakeSignOutStore, type FakeSignOutStore } from "../fakes/sign_outs.ts";
import { createFakeViews } from "../fakes/views.ts";
import { createTestAccess, tokenOf } from "../support/test_access.ts";
import { createTestWeb } from "../support/test_web.ts";

const FORM = { "content-type": "application/x-www-form-urlencoded" };

/** The pages of one replica; all have the same keys. */
function replica(clock: FakeClock, store: FakeSignOutStore) {
  const stack = new AsyncDisposableStack();
  const signOuts = createSignOuts({ clock, logger: silentLogger });
  stack.use(signOuts.share(store));
  const access = createTestAccess(clock, { signOuts });
  const web = stack.use(
    createTestWeb({ views: createFakeViews({ clock }, {}), clock, access }),
  );
  const send = async (path: string, init: RequestInit = {}) =>
    await web.fetch(new Request(`http://localhost:8080${path}`, init));
  const post = (path: string, fields: Record<string, string>, cookie = "") =>
    send(path, {
      method: "POST",
      headers: { ...FORM, ...cookie === "" ? {} : { cookie } },
      body: new URLSearchParams(fields),
    });
  return {
    send,
    post,
    async signIn() {
      const answer = await post("/sign-in", { token: tokenOf("operator") });
      assert.equal(answer.status, 303);
      const cookie = cookieOf(answer);
      const page = await (await send("/backends/pod", { headers: { cookie } })).text();
      const proof = /name="csrf" value="([0-9a-f]+)"/.exec(page)?.[1] ?? "";
      assert.notEqual(proof, "");
      return { cookie, proof };
    },
    async status(cookie: string) {
      const answer = await send("/api/v1/status", { headers: { cookie } });
      await answer.body?.cancel();
      return answer.status;
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

function cookieOf(answer: Response): string {
  const set = answer.headers.getSetCookie().find((each) => each.startsWith("gdr-session="));
  return set?.split(";", 1)[0] ?? "";
}

Deno.test("signing out at one replica ends the session at the others, and at one that starts later", async () => {
  const clock = createFakeClock();
  const store = createFakeSignOutStore();
  await using one = replica(clock, store);
  await using other = replica(clock, store);
  const { cookie, proof } = await one.signIn();
  const kept = await other.signIn();
  assert.equal(await other.status(cookie), 200);
  const answer = await other.post("/sign-out", { csrf: proof }, cookie);
  assert.equal(answer.status, 303);
  assert.equal(answer.headers.get("location"), "/sign-in");
  assert.match(answer.headers.getSetCookie().join(), /gdr-session=; .*Max-Age=0/);
  await clock.advance(1);
  assert.equal(await one.status(cookie), 401);
  await using later = replica(clock, store);
  await clock.advance(1);
  assert.equal(await later.status(cookie), 401);
  assert.equal(await later.status(kept.cookie), 200);
});

Deno.test("signing out while NATS is away says what it could do, and the rest is done later", async () => {
  const clock = createFakeClock();
  const store = createFakeSignOutStore();
  await using one = replica(clock, store);
  await using other = replica(clock, store);
  const { cookie, proof } = await one.signIn();
  store.away(true);
  const asked = one.post("/sign-out", { csrf: proof }, cookie);
  await clock.advance(2_000);
  const answer = await asked;
  assert.equal(answer.status, 202);
  assert.match(answer.headers.getSetCookie().join(), /gdr-session=; .*Max-Age=0/);
  const page = await answer.text();
  assert.match(page, /role="alert"[^>]*>You are signed out in this browser and at this replica\./);
  assert.match(page, /NATS does not answer/);
  assert.equal(await one.status(cookie), 401);
  // That is what the page has said.
  assert.equal(await other.status(cookie), 200);
  store.away(false);
  await clock.advance(1);
  assert.equal(await other.status(cookie), 401);
});

Deno.test("signing in again ends the session before at every replica, whether NATS is there or not", async () => {
  const clock = createFakeClock();
  const store = createFakeSignOutStore();
  await using one = replica(clock, store);
  await using other = replica(clock, store);
  const first = await one.signIn();
  const second = cookieOf(await one.post("/sign-in", { token: tokenOf("admin") }, first.cookie));
  await clock.advance(1);
  assert.equal(await other.status(first.cookie), 401);
  assert.equal(await other.status(second), 200);
  store.away(true);
  const asked = one.post("/sign-in", { token: tokenOf("admin") }, second);
  await clock.advance(2_000);
  const third = cookieOf(await asked);
  assert.equal(await one.status(second), 401);
  assert.equal(await one.status(third), 200);
  store.away(false);
  await clock.advance(1);
  assert.equal(await other.status(second), 401);
});
