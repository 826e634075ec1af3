import assert from "node:assert/strict";
import type { ActionOutcome, Actions } from "../controller/actions.ts";
import { createFakeClock } from "../lib/fake_clock.ts";
import { silentLogger } from "../lib/logger.ts";
import { createFakeViews } from "../tests/fakes/views.ts";
import { NO_ASSETS } from "./assets.ts";
import { createWeb } from "./server.ts";

const ID = "gitea-task-799";
const API = `/api/v1/assignments/${ID}/retry`;
const FORM = `/assignments/${ID}/retry`;

function setup(outcome?: ActionOutcome) {
  const clock = createFakeClock();
  const calls: { readonly id: string; readonly note: string }[] = [];
  const actions: Actions = {
    retry(id, { note, requestId, by }) {
      assert.ok(requestId !== "" && by !== "");
      calls.push({ id, note });
      const at = new Date(clock.now()).toISOString();
      return Promise.resolve(
        outcome ?? {
          kind: "done",
          operation: {
            id: "op-1",
            action: "retry",
            target: id,
            state: "done",
            progress: { done: 1, total: 1 },
            startedAt: at,
            endedAt: at,
            by,
            note,
            before: null,
            after: null,
            error: null,
          },
        },
      );
    },
  };
  const web = createWeb({
    views: createFakeViews({ clock }, {}),
    actions,
    clock,
    logger: silentLogger,
    version: "0.1.0",
    hosts: ["localhost"],
    metricsText: () => Promise.resolve(""),
    readiness: () => ({ ready: true, role: "leader", checks: [] }),
    assets: NO_ASSETS,
  });
  const post = async (path: string, body: string, headers: Record<string, string> = {}) =>
    await web.fetch(
      new Request(`http://localhost:8080${path}`, { method: "POST", body, headers }),
    );
  return {
    calls,
    web,
    json: (body: string, headers: Record<string, string> = {}) =>
      post(API, body, { "content-type": "application/json", ...headers }),
    form: (headers: Record<string, string> = {}, body = "") =>
      post(FORM, body, { "content-type": "application/x-www-form-urlencoded", ...headers }),
    post,
    [Symbol.asyncDispose]: () => web[Symbol.asyncDispose](),
  };
}

Deno.test("POST /api/v1/assignments/:id/retry answers with the operation", async () => {
  await using t = setup();
  const answer = await t.json('{"note":"disk is mounted again"}');
  assert.equal(answer.status, 200);
  const body = await answer.json();
  assert.deepEqual([body.action, body.target, body.state, body.note], [
    "retry",
    ID,
    "done",
    "disk is mounted again",
  ]);
  assert.deepEqual(t.calls, [{ id: ID, note: "disk is mounted again" }]);
});

Deno.test("POST of a form leads back to the job's page", async () => {
  await using t = setup();
  const answer = await t.form({ origin: "null", "sec-fetch-site": "same-origin" }, "note=a+b");
  assert.equal(answer.status, 303);
  assert.equal(answer.headers.get("location"), `/assignments/${ID}`);
  assert.deepEqual(t.calls, [{ id: ID, note: "a b" }]);
});

Deno.test("POST is refused with 403 when another site asks", async () => {
  await using t = setup();
  const refused: Record<string, string>[] = [
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-site" },
    { "sec-fetch-site": "none" },
    { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" },
    { origin: "http://evil.test" },
    { origin: "null" },
    { origin: "http://localhost:9999" },
    { "sec-fetch-site": "same-origin", origin: "http://evil.test" },
  ];
  for (const headers of refused) {
    assert.equal((await t.json('{"note":""}', headers)).status, 403, JSON.stringify(headers));
    assert.equal((await t.form(headers)).status, 403, JSON.stringify(headers));
  }
  assert.deepEqual(t.calls, []);
  const own = { "sec-fetch-site": "same-origin", origin: "http://localhost:8080" };
  assert.equal((await t.json('{"note":""}', own)).status, 200);
  const foreignHost = await t.web.fetch(
    new Request(`http://evil.test${API}`, { method: "POST", body: "{}" }),
  );
  assert.equal(foreignHost.status, 421);
});

Deno.test("POST is refused when its body is not what the action takes", async () => {
  await using t = setup();
  const status = async (body: string, type = "application/json") =>
    (await t.post(API, body, { "content-type": type })).status;
  assert.equal(await status("{}"), 400);
  assert.equal(await status("{"), 400);
  assert.equal(await status('{"note":1}'), 400);
  assert.equal(await status(JSON.stringify({ note: "x".repeat(501) })), 400);
  assert.equal(await status(JSON.stringify({ note: "x".repeat(20_000) })), 413);
  assert.equal(await status('{"note":""}', "text/plain"), 415);
  assert.equal(await status("note=", "application/x-www-form-urlencoded"), 415);
  const unknown = await t.post("/api/v1/assignments/nothing/retry", '{"note":""}', {
    "content-type": "application/json",
  });
  assert.equal(unknown.status, 404);
  assert.deepEqual(t.calls, []);
});

Deno.test("POST says as a problem why nothing was done, and what stands there now", async () => {
  const cases: readonly (readonly [ActionOutcome, number, number])[] = [
    [{ kind: "absent", detail: "Look for another one" }, 404, 404],
    [{ kind: "conflict", detail: "Retry only what is parked", current: null }, 409, 303],
    [{ kind: "unavailable", detail: 'Ask the leader: it is "b"' }, 503, 503],
  ];
  for (const [outcome, status, formStatus] of cases) {
    await using t = setup(outcome);
    const answer = await t.json('{"note":""}');
    assert.equal(answer.status, status);
    const body = await answer.json();
    assert.equal(body.detail, outcome.kind === "done" ? "" : outcome.detail);
    if (status === 409) assert.equal(body.current, null);
    const form = await t.form({ accept: "text/html" });
    assert.equal(form.status, formStatus, outcome.kind);
  }
});

Deno.test("the job's page offers the retry of a parked job, and of no other", async () => {
  await using t = setup();
  const list = await (await t.web.fetch(
    new Request("http://localhost/api/v1/assignments?state=parked&limit=1"),
  )).json();
  const page = async (id: string) =>
    await (await t.web.fetch(
      new Request(`http://localhost/assignments/${id}`, { headers: { accept: "text/html" } }),
    )).text();
  const { id } = list.items[0];
  assert.match(
    await page(id),
    new RegExp(`<form method="post" action="/assignments/${id}/retry">`),
  );
  const running = await (await t.web.fetch(
    new Request("http://localhost/api/v1/assignments?state=running&limit=1"),
  )).json();
  assert.ok(!(await page(running.items[0].id)).includes('<form method="post"'));
});

Deno.test("GET of an action is nothing", async () => {
  await using t = setup();
  const answer = await t.web.fetch(new Request(`http://localhost${API}`));
  assert.equal(answer.status, 404);
});
