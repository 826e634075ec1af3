import assert from "node:assert/strict";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { createStandby } from "../../web/standby.ts";
import { createFakeViews } from "../fakes/views.ts";
import { createTestAccess, tokenOf } from "../support/test_access.ts";
import { createTestWeb } from "../support/test_web.ts";

Deno.test("a session of a standby is known to the leader, and nobody is passed on unknown", async () => {
  const clock = createFakeClock();
  const views = createFakeViews({ clock }, {});
  await using leader = createTestWeb({ views, clock, access: createTestAccess(clock) });
  const passed: number[] = [];
  const standby = createStandby({
    leader: () => ({ holder: "gdr-0", address: "localhost:8080" }),
    self: "gdr-1",
    clock,
    logger: silentLogger,
    async fetch(input, init) {
      const answer = await leader.fetch(new Request(input, init));
      passed.push(answer.status);
      return answer;
    },
  });
  await using web = createTestWeb({ views, clock, standby, access: createTestAccess(clock) });
  const send = async (path: string, init: RequestInit = {}) =>
    await web.fetch(new Request(`http://localhost:8080${path}`, init));
  assert.equal((await send("/api/v1/status")).status, 401);
  const signed = await send("/sign-in", {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: new URLSearchParams({ token: tokenOf("viewer") }),
  });
  assert.deepEqual(passed, []);
  const cookie = signed.headers.getSetCookie()[0]?.split(";")[0] ?? "";
  const answer = await send("/api/v1/status", { headers: { cookie } });
  assert.equal(answer.headers.get("gdr-answered-by"), "gdr-0");
  await answer.body?.cancel();
  assert.deepEqual(passed, [200]);
});
