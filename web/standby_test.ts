import assert from "node:assert/strict";
import { untilAborted } from "../lib/abortable.ts";
import { createFakeClock, type FakeClock } from "../lib/fake_clock.ts";
import { silentLogger } from "../lib/logger.ts";
import { createFakeViews } from "../tests/fakes/views.ts";
import { type Web } from "./server.ts";
import { createStandby, FORWARDED_BY, type Upstream } from "./standby.ts";
import { createTestWeb } from "../tests/support/test_web.ts";

const LEADER: Upstream = { holder: "one_uuid", address: "10.0.0.7:8080" };

/** A leader's and a standby's pages; `asked` is what the leader was asked for. */
function setup(given: { readonly hosts?: readonly string[]; readonly answers?: boolean } = {}) {
  const clock = createFakeClock();
  const asked: Request[] = [];
  const state = { upstream: LEADER as Upstream | null, failures: 0 };
  const web = (version: string, clock: FakeClock, more = {}): Web =>
    createTestWeb({
      views: createFakeViews({ clock }),
      clock,
      version,
      metricsText: () => Promise.resolve(`# ${version}\n`),
      readiness: () => ({ ready: true, role: "standby", checks: [] }),
      ...more,
    });
  const leader = web("leader", clock, { hosts: given.hosts ?? ["10.0.0.7:8080"] });
  const standby = web("standby", clock, {
    standby: createStandby({
      leader: () => state.upstream,
      self: "two_uuid",
      clock,
      logger: { ...silentLogger, child: () => ({ ...silentLogger, warn: () => state.failures++ }) },
      async fetch(input: URL | RequestInfo, init?: RequestInit) {
        const request = new Request(input, init);
        asked.push(request);
        if (given.answers !== false) return await leader.fetch(request);
        return await untilAborted(request.signal);
      },
    }),
  });
  return {
    clock,
    asked,
    state,
    ask: async (path: string, init: RequestInit = {}) =>
      await standby.fetch(new Request(`http://localhost:8080${path}`, init)),
    async [Symbol.asyncDispose]() {
      await standby[Symbol.asyncDispose]();
      await leader[Symbol.asyncDispose]();
    },
  };
}

Deno.test("forward() answers pages and API as the leader does, with the leader's own policy", async () => {
  await using t = setup();
  const page = await t.ask("/?backend=pod", {
    headers: { accept: "text/html", cookie: "lang=zh" },
  });
  assert.equal(page.status, 200);
  assert.equal(page.headers.get("gdr-answered-by"), "one_uuid");
  assert.match(page.headers.get("content-security-policy") ?? "", /script-src 'nonce-/);
  await page.body?.cancel();
  const [asked] = t.asked;
  assert.equal(asked?.url, "http://10.0.0.7:8080/?backend=pod");
  assert.equal(asked?.headers.get("cookie"), "lang=zh");
  assert.equal(asked?.headers.get(FORWARDED_BY), "two_uuid");
  const status = await (await t.ask("/api/v1/status")).json();
  assert.equal(typeof status.leader, "object");
  assert.equal(t.asked.length, 2);
});

Deno.test("forward() leaves what this process alone can tell, and what was passed on already, to it", async () => {
  await using t = setup();
  assert.equal(await (await t.ask("/metrics")).text(), "# standby\n");
  assert.equal((await (await t.ask("/readyz")).json()).role, "standby");
  const again = await t.ask("/", { headers: { accept: "text/html", [FORWARDED_BY]: "three" } });
  assert.equal(again.headers.get("gdr-answered-by"), null);
  await again.body?.cancel();
  t.state.upstream = null;
  const own = await t.ask("/");
  assert.equal(own.headers.get("gdr-answered-by"), null);
  await own.body?.cancel();
  assert.equal(t.asked.length, 0);
});

Deno.test("forward() passes on nothing that the guard refuses, and no action", async () => {
  await using t = setup();
  const rebound = await t.ask("/", { headers: { host: "evil.example.org" } });
  assert.equal(rebound.status, 421);
  const acted = await t.ask("/api/v1/assignments/gitea-task-1/retry", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ note: "try again" }),
  });
  assert.equal(acted.status, 503);
  assert.match((await acted.json()).detail, /leader/);
  await rebound.body?.cancel();
  assert.equal(t.asked.length, 0);
});

Deno.test("forward() gives the leader three seconds, then answers itself and lets it rest", async () => {
  await using t = setup({ answers: false });
  const waiting = t.ask("/healthz-of-another");
  await t.clock.advance(3_000);
  const first = await waiting;
  assert.equal(first.headers.get("gdr-answered-by"), null);
  await first.body?.cancel();
  const second = await t.ask("/");
  await second.body?.cancel();
  assert.equal(t.asked.length, 1);
  assert.equal(t.state.failures, 1);
  await t.clock.advance(2_000);
  const third = t.ask("/");
  await t.clock.advance(3_000);
  await (await third).body?.cancel();
  assert.equal(t.asked.length, 2);
  assert.equal(t.state.failures, 1, "said once");
});

Deno.test("forward() answers itself when the leader does not know its own address", async () => {
  await using t = setup({ hosts: ["other"] });
  const answer = await t.ask("/");
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get("gdr-answered-by"), null);
  await answer.body?.cancel();
  assert.equal(t.state.failures, 1);
});

Deno.test("forward() ends an event stream when another leads, so that the reader comes back", async () => {
  await using t = setup();
  const answer = await t.ask("/api/v1/events", { headers: { accept: "text/event-stream" } });
  assert.match(answer.headers.get("content-type") ?? "", /event-stream/);
  assert.ok(answer.body !== null);
  const reader = answer.body.getReader();
  const first = await reader.read();
  assert.match(new TextDecoder().decode(first.value), /event: snapshot/);
  t.state.upstream = { holder: "three_uuid", address: "10.0.0.8:8080" };
  const next = reader.read();
  await t.clock.advance(5_000);
  assert.equal((await next).done, true);
});
