import assert from "node:assert/strict";
import { SandboxError } from "../../backends/vm/sandboxes.ts";
import { type FakeOpenSandbox, startFakeOpenSandbox } from "../../tests/fakes/opensandbox.ts";
import { call } from "../../tests/support/calls.ts";
import { answer, openLifecycle, pageOf, spoil } from "../../tests/support/lifecycle_setup.ts";
import { rejection } from "../../tests/support/rejections.ts";

const gets = (server: FakeOpenSandbox) => server.requests.length;

Deno.test("list() tells only what has the metadata, also when the filter was lost on the way", async () => {
  await using server = startFakeOpenSandbox();
  using api = openLifecycle(server);
  const ours = server.plant({ metadata: { a: "1", b: "2" } });
  server.plant({ metadata: { a: "1", b: "3" } });
  server.plant({ metadata: {} });
  const items = [...server.sandboxes.values()];
  answer(server, ["GET", pageOf(items, 3, false)]);
  assert.deepEqual((await api.list({ a: "1", b: "2" }, call)).map(({ id }) => id), [ours.id]);
});

Deno.test("list() rejects, and does not say none, when pages hold fewer than the server counts", async () => {
  await using server = startFakeOpenSandbox();
  using api = openLifecycle(server);
  answer(server, ["GET", pageOf([], 1, false)], { times: 100 });
  const error = await rejection(SandboxError, api.list({ a: "1" }, call));
  assert.equal(error.code, "unknown_outcome");
  assert.match(error.message, /0 sandboxes on its pages, 1 by its own count/);
  assert.equal(gets(server), 4);
  assert.equal(api.status().lastError, error.message);
  assert.notEqual(api.status().state, "up");
});

Deno.test("list() takes what is there when the count is too low", async () => {
  await using server = startFakeOpenSandbox();
  using api = openLifecycle(server);
  const one = server.plant({ metadata: { a: "1" } });
  answer(server, ["GET", pageOf([one], 0, false)], { times: 100 });
  assert.deepEqual((await api.list({ a: "1" }, call)).map(({ id }) => id), [one.id]);
});

Deno.test("list() ends when there is always another page, empty or the same again", async () => {
  for (const full of [false, true]) {
    await using server = startFakeOpenSandbox();
    using api = openLifecycle(server);
    const one = server.plant({ metadata: { a: "1" } });
    answer(server, ["GET", pageOf(full ? [one] : [], 1, true)], { times: 1_000 });
    assert.equal(
      (await rejection(SandboxError, api.list({ a: "1" }, call))).code,
      "unknown_outcome",
    );
    assert.ok(gets(server) <= 8, `${gets(server)} requests`);
  }
});

Deno.test("list() has one time limit for all its pages, and tells of it", async () => {
  await using server = startFakeOpenSandbox();
  using api = openLifecycle(server, { listTimeoutMs: 60 });
  server.faults.push({ method: "GET", when: "before", answer: { kind: "hang" } });
  const error = await rejection(SandboxError, api.list({}, call));
  assert.equal(error.message, "no whole list within 0.06 s");
  assert.notEqual(api.status().state, "up");
});

Deno.test("list() escapes its filter whole and reads every page, the oldest first", async () => {
  await using server = startFakeOpenSandbox();
  using api = openLifecycle(server);
  const metadata = { "ci.example.org/backend": "vm", "ci.example.org/instance": "0a" };
  const planted = Array.from({ length: 250 }, () => server.plant({ metadata }).id);
  server.plant({ metadata: { "ci.example.org/backend": "vm", "ci.example.org/instance": "0b" } });
  const all = await api.list(metadata, call);
  assert.deepEqual(all.map(({ id }) => id), planted);
  const pages = server.requests.map(({ path }) => new URLSearchParams(path.split("?")[1]));
  assert.deepEqual(pages.map((query) => query.get("page")), ["1", "2", "3"]);
  assert.deepEqual(pages.map((query) => query.get("pageSize")), ["100", "100", "100"]);
});

Deno.test("list() misses none when others go while it walks through the pages", async () => {
  await using server = startFakeOpenSandbox();
  using api = openLifecycle(server);
  const planted = Array.from({ length: 250 }, () => server.plant({ metadata: { a: "b" } }).id);
  const [gone, kept] = [planted.slice(200), planted.slice(0, 200)];
  server.onPage = () => {
    // All of page 1, after it was read: page 2 then begins fifty later than it should.
    for (const id of gone) server.sandboxes.delete(id);
  };
  const found = new Set((await api.list({ a: "b" }, call)).map(({ id }) => id));
  assert.deepEqual(kept.filter((id) => !found.has(id)), []);
});

Deno.test("list() rejects when any page fails: a part is not all", async () => {
  await using server = startFakeOpenSandbox();
  using api = openLifecycle(server);
  for (let i = 0; i < 150; i++) server.plant({ metadata: { a: "b" } });
  server.onPage = () => {
    server.onPage = null;
    const body = JSON.stringify({ code: "SANDBOX_LIST_UNAVAILABLE", message: "no API server" });
    spoil(server, { method: "GET", answer: { kind: "status", status: 503, body } });
  };
  const error = await rejection(SandboxError, api.list({ a: "b" }, call));
  assert.match(error.message, /503: SANDBOX_LIST_UNAVAILABLE: no API server/);
});
