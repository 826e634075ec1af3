import assert from "node:assert/strict";
import { GiteaError } from "../../controller/gitea.ts";
import { Secret } from "../../lib/secret.ts";
import { endless } from "../../tests/support/endless.ts";
import { createGiteaRest } from "./rest.ts";

const call = { signal: new AbortController().signal };
const NOW = Date.parse("2027-01-15T08:00:00Z");

/** Answers of a Gitea by path, without the query; what is not there is refused with 403. */
function setup(answers: Readonly<Record<string, (query: URLSearchParams) => unknown>>) {
  const asked: string[] = [];
  const fetch: typeof globalThis.fetch = (input, init) => {
    const url = new URL(String(input));
    const path = url.pathname.replace("/git/api/v1", "");
    asked.push(path + url.search);
    assert.equal(new Headers(init?.headers).get("authorization"), "token planted");
    assert.equal(init?.method ?? "GET", "GET");
    const answer = answers[path];
    if (answer === undefined) return Promise.resolve(new Response("{}", { status: 403 }));
    const body = answer(url.searchParams);
    return Promise.resolve(
      body instanceof Response
        ? body
        : Response.json(body, { headers: { date: new Date(NOW).toUTCString() } }),
    );
  };
  const url = "https://example.test/git/";
  return { asked, rest: createGiteaRest({ url, token: new Secret("planted"), fetch }) };
}

function task(id: number, more: Readonly<Record<string, unknown>> = {}) {
  const run_started_at = new Date(NOW - 180_000).toISOString();
  return { id, name: "build", status: "running", run_started_at, ...more };
}

const job = (repository: string, id: number) => ({
  id,
  url: `https://example.test/git/api/v1/repos/${repository}/actions/jobs/${id}`,
});

Deno.test("list() asks an administrator's lists which repositories are at work, and those for tasks", async () => {
  const t = setup({
    "/admin/actions/jobs": (query) => ({
      jobs: query.get("page") === "1"
        ? Array.from({ length: 50 }, (_, i) => job("acme/web", i + 1))
        : [job("acme/api", 51), { id: 52, url: "https://evil.test/x" }],
    }),
    "/repos/acme/web/actions/tasks": () => ({
      workflow_runs: [task(9), task(8, { status: "success" }), task(0), task(7, { name: null })],
    }),
    "/repos/acme/api/actions/tasks": () => ({
      workflow_runs: [task(12, { run_started_at: new Date(NOW - 1_000).toISOString() })],
    }),
  });
  const found = await t.rest.list(call);
  assert.deepEqual(found.map(({ taskId, ageMs, repository }) => [taskId, ageMs, repository]), [
    ["9", 180_000, "acme/web"],
    ["7", 180_000, "acme/web"],
    ["12", 1_000, "acme/api"],
  ]);
  assert.equal(t.asked.length, 4);
});

Deno.test("list() of an ordinary user walks through the repositories it can see, 25 at a time", async () => {
  const names = Array.from({ length: 30 }, (_, i) => `acme/r${i}`);
  const t = setup({
    "/repos/search": (query) => {
      const from = (Number(query.get("page")) - 1) * 25;
      const data = names.slice(from, from + 25).map((full_name, i) => ({
        full_name,
        has_actions: i !== 1,
      }));
      return { ok: true, data };
    },
    ...Object.fromEntries(names.map((name, i) => [
      `/repos/${name}/actions/tasks`,
      () => ({ workflow_runs: [task(i + 1)] }),
    ])),
  });
  const first = (await t.rest.list(call)).map(({ taskId }) => taskId);
  assert.equal(first.length, 24);
  assert.ok(!first.includes("2" as never));
  const second = (await t.rest.list(call)).map(({ taskId }) => taskId);
  assert.deepEqual(second, ["26", "28", "29", "30"]);
  assert.deepEqual((await t.rest.list(call)).map(({ taskId }) => taskId), first);
  assert.equal(t.asked.filter((path) => path.startsWith("/admin/")).length, 1);
});

Deno.test("list() goes back as far as a task may run, and no further", async () => {
  const t = setup({
    "/admin/actions/jobs": () => ({ jobs: [job("acme/web", 1)] }),
    "/repos/acme/web/actions/tasks": (query) => {
      const page = Number(query.get("page"));
      const run_started_at = new Date(NOW - page * 13 * 3_600_000).toISOString();
      return {
        workflow_runs: Array.from(
          { length: 50 },
          (_, i) => task(page * 100 + i, { run_started_at }),
        ),
      };
    },
  });
  assert.equal((await t.rest.list(call)).length, 100);
});

Deno.test("list() rejects with the reason and the way out, without the token", async () => {
  for (
    const [status, code, said] of [
      [401, "unauthenticated", /GITEA_API_TOKEN is wrong/],
      [502, "unavailable", /answered 502/],
      [302, "unavailable", /answered 302/],
    ] as const
  ) {
    const t = setup({ "/admin/actions/jobs": () => new Response("{}", { status }) });
    const error = await t.rest.list(call).catch((error: unknown) => error);
    assert.ok(error instanceof GiteaError);
    assert.equal(error.code, code);
    assert.match(error.message, said);
    assert.ok(!error.message.includes("planted"));
  }
  const html = setup({ "/admin/actions/jobs": () => new Response("<html>") });
  await assert.rejects(html.rest.list(call), GiteaError);
  const long = setup({ "/admin/actions/jobs": () => new Response(endless()) });
  await assert.rejects(long.rest.list(call), /more than 16 MiB/);
});

Deno.test("list() never puts anything but an owner and a name into a path", async () => {
  const t = setup({
    "/repos/search": () => ({
      data: [{ full_name: "../admin" }, { full_name: "a/b/c" }, { full_name: "a/b?x=1" }, {}],
    }),
  });
  assert.deepEqual(await t.rest.list(call), []);
  assert.equal(t.asked.length, 2);
});

Deno.test("runners() lists all with their labels, or says that it may not", async () => {
  const t = setup({
    "/admin/actions/runners": () => ({
      runners: [{
        id: 3,
        name: "old",
        labels: [{ id: 1, name: "self-hosted" }, { name: "linux" }],
      }],
    }),
  });
  assert.deepEqual(await t.rest.runners(call), [
    { id: "3", name: "old", labels: ["self-hosted", "linux"] },
  ]);
  assert.equal(await setup({}).rest.runners(call), null);
});
