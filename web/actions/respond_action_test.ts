import assert from "node:assert/strict";
import type { Action } from "../../controller/actions/action_kinds.ts";
import type { ActionOutcome, ActionRequest, Actions } from "../../controller/actions/actions.ts";
import type { ExecutorView, OperationView } from "../../controller/views/views.ts";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { createFakeViews } from "../../tests/fakes/views.ts";
import { idOf } from "../../tests/contract/queue_suite.ts";
import { createTestWeb } from "../../tests/support/test_web.ts";

const ID = idOf(799);
const API = `/api/v1/assignments/${ID}/retry`;
const FORM = `/assignments/${ID}/retry`;

function operationOf(over: Partial<OperationView> = {}): OperationView {
  return {
    id: "op-1",
    action: "retry",
    target: ID,
    state: "done",
    progress: { done: 1, total: 1 },
    startedAt: "2027-01-15T08:00:00.000Z",
    endedAt: "2027-01-15T08:00:00.000Z",
    by: "alice",
    note: "",
    before: null,
    after: null,
    error: null,
    ...over,
  };
}

function setup(outcome?: ActionOutcome) {
  const clock = createFakeClock();
  const calls: { readonly action: Action; readonly request: ActionRequest }[] = [];
  const actions: Actions = {
    act(action, request) {
      assert.ok(request.requestId !== "" && request.actor.name !== "");
      calls.push({ action, request });
      const { note } = request;
      return Promise.resolve(outcome ?? { kind: "done", operation: operationOf({ note }) });
    },
    preview: () => undefined,
    tagOf: (target) => target === ID || target === "pod" ? '"tag-1"' : null,
    refused() {},
  };
  const web = createTestWeb({
    views: createFakeViews({ clock }, {}),
    actions,
    clock,
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
  assert.deepEqual(t.calls.map(({ action, request }) => [action, request.note]), [
    [{ kind: "retry", id: ID }, "disk is mounted again"],
  ]);
});

Deno.test("POST of a form leads to the row of its operation", async () => {
  await using t = setup();
  const answer = await t.form({ origin: "null", "sec-fetch-site": "same-origin" }, "note=a+b");
  assert.equal(answer.status, 303);
  assert.equal(answer.headers.get("location"), "/operations/op-1");
  assert.equal(t.calls[0]?.request.note, "a b");
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
    [{ kind: "conflict", detail: "Retry only what is parked", current: null }, 409, 409],
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
    if (outcome.kind === "conflict") {
      const text = await form.text();
      assert.match(text, /Nothing was done/);
      assert.match(text, /Retry only what is parked/);
      assert.match(text, new RegExp(`href="/assignments/${ID}"`));
    }
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
  assert.equal(answer.status, 405);
  assert.equal(answer.headers.get("allow"), "POST");
  assert.deepEqual(t.calls, []);
});

/** Path, body and the action that they ask for. */
const ASKED: readonly (readonly [string, unknown, Action])[] = [
  ["backends/pod/cordon", {}, { kind: "cordon", backend: "pod" }],
  ["backends/pod/drain", {}, { kind: "drain", backend: "pod", hold: false, deadline: null }],
  ["backends/pod/drain", { hold: true, deadlineSeconds: 90 }, {
    kind: "drain",
    backend: "pod",
    hold: true,
    deadline: { kind: "within", ms: 90_000 },
  }],
  ["backends/vm/drain", { deadline: "2027-01-15T10:00:00+02:00" }, {
    kind: "drain",
    backend: "vm",
    hold: false,
    deadline: { kind: "at", at: Date.UTC(2027, 0, 15, 8) },
  }],
  ["backends/pod/resume", {}, { kind: "resume", backend: "pod" }],
  ["backends/pod/capacity", { capacity: 0 }, { kind: "capacity", backend: "pod", value: 0 }],
  ["backends/pod/capacity", { capacity: null }, { kind: "capacity", backend: "pod", value: null }],
  ["backends/vm/label", { label: "vm-dev" }, { kind: "label", backend: "vm", value: "vm-dev" }],
  [`assignments/${ID}/cancel`, {}, { kind: "cancel", id: ID }],
  [`assignments/${ID}/release`, { tier: "forced" }, { kind: "release", id: ID, tier: "forced" }],
  [`assignments/${ID}/release`, { tier: "forget", confirm: ID }, {
    kind: "release",
    id: ID,
    tier: "forget",
  }],
  ["operations/op-9/undo", {}, { kind: "undo", operation: "op-9" }],
  ["leader/step-down", {}, { kind: "step-down" }],
];

Deno.test("POST of the API asks for the action that its path and body name", async () => {
  await using t = setup();
  for (const [path, body, action] of ASKED) {
    const text = JSON.stringify({ note: "why", ...body as object });
    const headers = {
      "content-type": "application/json",
      "idempotency-key": "key-1",
      "if-match": '"tag-1"',
    };
    assert.equal((await t.post(`/api/v1/${path}`, text, headers)).status, 200, path);
    const asked = t.calls.at(-1);
    assert.deepEqual(asked?.action, action);
    const { note, key, ifMatch } = asked?.request ?? {};
    assert.deepEqual([note, key, ifMatch], ["why", "key-1", '"tag-1"']);
  }
});

/** The same by forms. */
const FORMS: readonly (readonly [string, string, Action])[] = [
  ["backends/pod/cordon", "", { kind: "cordon", backend: "pod" }],
  ["backends/pod/drain", "hold=on&minutes=2", {
    kind: "drain",
    backend: "pod",
    hold: true,
    deadline: { kind: "within", ms: 120_000 },
  }],
  ["backends/pod/drain", "minutes=", {
    kind: "drain",
    backend: "pod",
    hold: false,
    deadline: null,
  }],
  ["backends/pod/resume", "", { kind: "resume", backend: "pod" }],
  ["backends/pod/capacity", "capacity=3", { kind: "capacity", backend: "pod", value: 3 }],
  ["backends/pod/capacity", "capacity=", { kind: "capacity", backend: "pod", value: null }],
  ["backends/vm/label", "label=vm", { kind: "label", backend: "vm", value: "vm" }],
  [`assignments/${ID}/cancel`, "", { kind: "cancel", id: ID }],
  [`assignments/${ID}/retry`, "", { kind: "retry", id: ID }],
  [`assignments/${ID}/release`, "tier=graceful", { kind: "release", id: ID, tier: "graceful" }],
  ["operations/op-9/undo", "", { kind: "undo", operation: "op-9" }],
  ["leader/step-down", "", { kind: "step-down" }],
];

Deno.test("POST of a form asks for the same, with the key in it", async () => {
  await using t = setup();
  for (const [path, form, action] of FORMS) {
    const text = `note=why&key=key-1&if_match=%22tag-1%22&${form}`;
    const type = { "content-type": "application/x-www-form-urlencoded" };
    const answer = await t.post(`/actions/${path}`, text, type);
    assert.equal(answer.status, 303, path);
    assert.equal(answer.headers.get("location"), "/operations/op-1");
    const asked = t.calls.at(-1);
    assert.deepEqual(asked?.action, action);
    assert.deepEqual([asked?.request.key, asked?.request.ifMatch], ["key-1", '"tag-1"']);
  }
});

Deno.test("POST refuses what does not fit together, and asks for nothing", async () => {
  await using t = setup();
  const json = async (path: string, body: unknown, headers: Record<string, string> = {}) =>
    (await t.post(`/api/v1/${path}`, JSON.stringify({ note: "", ...body as object }), {
      "content-type": "application/json",
      ...headers,
    })).status;
  const both = { deadline: "2027-01-15T08:00:00Z", deadlineSeconds: 5 };
  assert.equal(await json("backends/pod/drain", both), 400);
  assert.equal(await json("backends/pod/drain", { deadline: "tomorrow" }), 400);
  assert.equal(await json("backends/pod/capacity", {}), 400);
  assert.equal(await json("backends/pod/capacity", { capacity: -1 }), 400);
  assert.equal(await json("backends/pod/capacity", { capacity: 1.5 }), 400);
  assert.equal(await json("backends/vm/label", { label: "prod" }), 400);
  assert.equal(await json("backends/tpu/cordon", {}), 404);
  assert.equal(await json(`assignments/${ID}/release`, {}), 400, "no tier is preset");
  assert.equal(await json(`assignments/${ID}/release`, { tier: "forget" }), 400);
  assert.equal(await json(`assignments/${ID}/release`, { tier: "forget", confirm: "x" }), 400);
  assert.equal(await json("backends/pod/cordon", {}, { "idempotency-key": "two words" }), 400);
  assert.equal(await json("backends/pod/cordon", {}, { "idempotency-key": "x".repeat(256) }), 400);
  const form = { "content-type": "application/x-www-form-urlencoded" };
  assert.equal((await t.post(`/actions/assignments/${ID}/release`, "note=", form)).status, 400);
  assert.equal((await t.post("/actions/backends/pod/capacity", "capacity=x", form)).status, 400);
  assert.deepEqual(t.calls, []);
});

Deno.test("POST answers 202 with the place of an operation that goes on", async () => {
  await using t = setup({ kind: "done", operation: operationOf({ state: "running" }) });
  const answer = await t.json('{"note":""}');
  assert.equal(answer.status, 202);
  assert.equal(answer.headers.get("location"), "/api/v1/operations/op-1");
});

Deno.test("POST says 412 for a stale tag and 422 for a key of another action", async () => {
  const operation = operationOf({ state: "failed", id: "op-7", error: "Look again" });
  {
    const current = { tag: '"tag-2"' };
    await using t = setup({ kind: "stale", detail: "Look again", current, operation });
    const answer = await t.json('{"note":""}');
    assert.equal(answer.status, 412);
    const body = await answer.json();
    assert.deepEqual([body.current, body.operation], [current, "op-7"]);
    assert.equal((await t.form()).headers.get("location"), "/operations/op-7");
  }
  await using t = setup({ kind: "differs", detail: "Use another Idempotency-Key" });
  assert.equal((await t.json('{"note":""}')).status, 422);
  assert.equal((await t.form({ accept: "text/html" })).status, 422);
});

Deno.test("POST /api/v1/executors/:name/release is for those without a job, foreign ones included to be refused", async () => {
  await using t = setup();
  const list = await (await t.web.fetch(new Request("http://localhost/api/v1/executors"))).json();
  const find = (fits: (executor: ExecutorView) => boolean): ExecutorView =>
    list.items.find(fits) ?? assert.fail();
  const release = async (name: string, body: Readonly<Record<string, unknown>>) =>
    (await t.post(`/api/v1/executors/${name}/release`, JSON.stringify({ note: "", ...body }), {
      "content-type": "application/json",
    })).status;
  const unknown = find(({ ownership }) => ownership === "unknown");
  const { name, uid, backend } = unknown;
  assert.equal(await release(name, { tier: "forced" }), 200);
  const action = { kind: "release-executor", backend, name, uid, tier: "forced" };
  assert.deepEqual(t.calls.at(-1)?.action, action);
  assert.equal(await release(name, { tier: "forget" }), 400);
  assert.equal(await release(name, { tier: "forget", confirm: name }), 200);
  assert.equal(await release(name, { tier: "graceful" }), 400);
  const { length } = t.calls;
  assert.equal(
    await release(find(({ assignmentId }) => assignmentId !== null).name, {
      tier: "forced",
    }),
    409,
  );
  assert.equal(await release("ci-nobody", { tier: "forced" }), 404);
  assert.equal(await release("..%2fx", { tier: "forced" }), 404);
  assert.equal(t.calls.length, length);
});
