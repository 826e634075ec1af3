import assert from "node:assert/strict";
import type { Actions } from "../controller/actions/actions.ts";
import { previewRelease } from "../controller/actions/release_preview.ts";
import { createFakeClock } from "../lib/fake_clock.ts";
import { ROUTES } from "../routes/mod.ts";
import { createFakeViews } from "../tests/fakes/views.ts";
import { createLedgerWorld, infoOf } from "../tests/support/ledger_world.ts";
import { createTestWeb } from "../tests/support/test_web.ts";

// deno-lint-ignore no-explicit-any -- answers are looked into field by field
type Json = any;

const entry = createLedgerWorld().ledger.add(infoOf(799), { kind: "stored" }, 0);
const fakeActions: Actions = {
  act: () => Promise.resolve({ kind: "unavailable", detail: "Not in this test" }),
  preview: (_, tier) => previewRelease(entry, tier),
  tagOf: (target) => target === "vm" || target === "gitea-task-799" ? '"tag-1"' : null,
  refused() {},
};

function setup(waiting = 0) {
  const clock = createFakeClock();
  const views = createFakeViews({ clock }, { waiting });
  const web = createTestWeb({
    views,
    actions: fakeActions,
    clock,
  });
  const get = async (path: string, headers: Record<string, string> = {}) =>
    await web.fetch(new Request(`http://localhost/api/v1${path}`, { headers }));
  const ask = async (path: string, method: string) =>
    await web.fetch(new Request(`http://localhost/api/v1${path}`, { method }));
  const json = async (path: string): Promise<Json> => await (await get(path)).json();
  return {
    clock,
    views,
    get,
    json,
    fetch: ask,
    [Symbol.asyncDispose]: () => web[Symbol.asyncDispose](),
  };
}

const SAMPLES: Readonly<Record<string, string>> = {
  "api/v1/assignments/[id].ts": "/assignments/gitea-task-799",
  "api/v1/backends/[name].ts": "/backends/vm",
  "api/v1/assignments/[id]/preview.ts": "/assignments/gitea-task-799/preview?tier=forced",
  "api/v1/operations/[id].ts": "/operations/op-1",
};

Deno.test("every API route answers with exactly what its schema says", async () => {
  await using t = setup();
  for (const [file, route] of Object.entries(ROUTES)) {
    if (route.kind !== "api") continue;
    const path = SAMPLES[file] ?? route.path.slice("/api/v1".length);
    const answer = await t.get(path);
    assert.equal(answer.status, 200, path);
    assert.equal(answer.headers.get("content-type"), "application/json", path);
    const body = await answer.json();
    assert.deepEqual(route.response.parse(body), body, path);
  }
});

Deno.test("openapi.json is 3.1 and has every route with its parameters", async () => {
  await using t = setup();
  const document = await t.json("/openapi.json");
  assert.equal(document.openapi, "3.1.0");
  for (const route of Object.values(ROUTES)) {
    if (route.kind !== "api") continue;
    assert.ok(document.paths[route.path.replace(/:(\w+)/, "{$1}")]?.get, route.path);
  }
  const list = document.paths["/api/v1/assignments"].get;
  assert.deepEqual(
    list.parameters.map(({ name }: Json) => name).sort(),
    ["backend", "cursor", "limit", "repository", "state"],
  );
  assert.ok(document.paths["/api/v1/events"].get);
  assert.ok(document.components.schemas.AssignmentDetail.properties.phases);
  const { required, properties } = document.components.schemas.Status;
  assert.ok(required.includes("leader") && !required.includes("nextFetchAt"));
  assert.ok(properties.nextFetchAt);
});

Deno.test("GET /assignments goes through every page once, with Link to the next", async () => {
  await using t = setup(25);
  const seen = new Set<string>();
  let path: string | null = "/assignments?limit=10&state=stored";
  let pages = 0;
  while (path !== null) {
    const answer = await t.get(path);
    const { items, nextCursor, total } = await answer.json();
    assert.equal(total, 29);
    for (const { id } of items) seen.add(id);
    const link = /^<\/api\/v1([^>]+)>; rel="next"$/.exec(answer.headers.get("link") ?? "")?.[1];
    assert.equal(link === undefined, nextCursor === null);
    path = link ?? null;
    pages++;
  }
  assert.equal(seen.size, 29);
  assert.equal(pages, 3);
});

Deno.test("lists refuse limits and cursors that do not fit", async () => {
  await using t = setup();
  const queries = ["limit=0", "limit=501", "limit=x", "limit=1.5", "limit=", "limit=-1"];
  queries.push("cursor=%00", "cursor=a%20b", `cursor=${"a".repeat(501)}`, "cursor=notours");
  for (const list of ["/assignments", "/executors", "/audit", "/history"]) {
    for (const query of queries) {
      const answer = await t.get(`${list}?${query}`);
      assert.equal(answer.status, 400, `${list}?${query}`);
      assert.equal(answer.headers.get("content-type"), "application/problem+json");
      const body = await answer.json();
      assert.equal(body.requestId, answer.headers.get("x-request-id"));
      assert.ok(body.detail.length > 10);
    }
  }
});

Deno.test("filters refuse unknown values", async () => {
  await using t = setup();
  for (const query of ["backend=mars", "state=sleeping", `repository=${"a".repeat(301)}`]) {
    assert.equal((await t.get(`/assignments?${query}`)).status, 400, query);
  }
  assert.equal((await t.get("/executors?recovered=maybe")).status, 400);
  const [all, recovered, others] = await Promise.all(
    ["", "?recovered=true", "?recovered=false"].map(async (query) =>
      Number((await t.json(`/executors${query}`)).total)
    ),
  );
  assert.equal(all, (recovered ?? 0) + (others ?? 0));
  assert.ok((recovered ?? 0) > 0 && (others ?? 0) > 0);
  assert.equal((await t.get("/backends/mars")).status, 404);
  assert.equal((await t.get("/operations/none")).status, 404);
});

Deno.test("GET /status answers 304 while nothing but ages changed", async () => {
  await using t = setup();
  const first = await t.get("/status");
  const etag = first.headers.get("etag") ?? "";
  await first.body?.cancel();
  assert.match(etag, /^W\/"[0-9a-f]{24}"$/);
  const { sources } = t.views.status();
  t.views.override({ sources: { ...sources, gitea: { ...sources.gitea, ageMs: 1234 } } });
  for (const tag of [etag, etag.slice(2), `"x", ${etag}`, "*"]) {
    const answer = await t.get("/status", { "if-none-match": tag });
    assert.equal(answer.status, 304, tag);
    assert.equal(await answer.text(), "");
  }
  t.views.put({ task: 1000, state: "running", age: 1 });
  const changed = await t.get("/status", { "if-none-match": etag });
  assert.equal(changed.status, 200);
  await changed.body?.cancel();
});

Deno.test("unknown values are null, never 0 or empty", async () => {
  await using t = setup();
  const vm = await t.json("/backends/vm");
  assert.equal(vm.startMs.p95, null);
  const { items } = await t.json("/assignments?state=parked");
  assert.equal(items[0].executor, null);
  assert.equal(items[0].position, null);
});

Deno.test("GET /events sends a snapshot, then changes with old and new, then replays", async () => {
  await using t = setup();
  const answer = await t.get("/events");
  assert.match(answer.headers.get("content-type") ?? "", /^text\/event-stream/);
  assert.match(answer.headers.get("cache-control") ?? "", /no-transform/);
  assert.ok(answer.body);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  const first = (await reader.read()).value ?? "";
  assert.match(first, /^retry: 1000\n\nid: \d+-0\nevent: snapshot\ndata: /);
  assert.equal(JSON.parse(first.split("data: ")[1] ?? "").new.version, "0.1.0");

  t.views.put({ task: 815, state: "admitted", age: 13 });
  const change = (await reader.read()).value ?? "";
  const [, id, data] = /^id: (\d+-1)\nevent: assignment\ndata: (.*)\n\n$/.exec(change) ?? [];
  const { old, new: now } = JSON.parse(data ?? "");
  assert.deepEqual([old.state, now.state], ["stored", "admitted"]);
  await reader.cancel();

  t.views.drop(815);
  for (
    const [path, headers] of [["/events", { "last-event-id": id ?? "" }], [
      `/events?last=${id}`,
      {},
    ]] as const
  ) {
    const again = await t.get(path, headers);
    assert.ok(again.body);
    const replay = again.body.pipeThrough(new TextDecoderStream()).getReader();
    const text = (await replay.read()).value ?? "";
    assert.ok(!text.includes("snapshot"));
    assert.match(text, /event: backend[\s\S]*event: assignment\ndata: .*"new":null/);
    await replay.cancel();
  }
});

Deno.test("GET /events tells the status every 5 s and ends with the server", async () => {
  const t = setup();
  const answer = await t.get("/events");
  assert.ok(answer.body);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  await reader.read();
  await t.clock.advance(5000);
  assert.match((await reader.read()).value ?? "", /^event: status\ndata: /);
  await t[Symbol.asyncDispose]();
  assert.equal((await reader.read()).done, true);
  assert.equal(t.clock.pending, 0);
});

Deno.test("GET of a backend and of an assignment says what If-Match may name", async () => {
  await using t = setup();
  for (const path of ["/backends/vm", "/assignments/gitea-task-799"]) {
    assert.equal((await t.get(path)).headers.get("etag"), '"tag-1"', path);
  }
  assert.equal((await t.get("/backends/pod")).headers.get("etag"), null);
});

Deno.test("openapi.json has every action with its body, its headers and what it may answer", async () => {
  await using t = setup();
  const document = await t.json("/openapi.json");
  let actions = 0;
  for (const route of Object.values(ROUTES)) {
    if (route.kind !== "action" || route.form) continue;
    actions++;
    const post = document.paths[route.path.replace(/:(\w+)/, "{$1}")]?.post;
    assert.ok(post.requestBody.content["application/json"].schema, route.path);
    const headers = post.parameters.filter(({ in: where }: Json) => where === "header");
    assert.deepEqual(headers.map(({ name }: Json) => name), ["idempotency-key", "if-match"]);
    const codes = [
      "200",
      "202",
      "400",
      "401",
      "403",
      "404",
      "408",
      "409",
      "412",
      "413",
      "415",
      "421",
      "422",
      "429",
      "503",
    ];
    assert.deepEqual(Object.keys(post.responses), codes);
  }
  assert.equal(actions, 11);
});

Deno.test("a method that an address does not take is refused with those that it takes", async () => {
  await using t = setup();
  const allow = async (path: string, method: string) => {
    const answer = await t.fetch(path, method);
    assert.equal(answer.status, 405, `${method} ${path}`);
    return answer.headers.get("allow");
  };
  assert.equal(await allow("/status", "DELETE"), "GET, HEAD");
  assert.equal(await allow("/status", "POST"), "GET, HEAD");
  assert.equal(await allow("/backends/pod/cordon", "OPTIONS"), "POST");
  assert.equal(await allow("/nothing", "PUT"), "GET, HEAD");
});
