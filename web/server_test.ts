import assert from "node:assert/strict";
import { createFakeClock, type FakeClock } from "../lib/fake_clock.ts";
import { type Fields, type Logger, silentLogger } from "../lib/logger.ts";
import { createFakeViews, type FakeViews, type FakeViewsOptions } from "../tests/fakes/views.ts";
import { HOSTILE } from "../tests/fakes/sample_jobs.ts";
import { NO_ASSETS } from "./assets.ts";
import { createProbes } from "./probes.ts";
import type { WebDeps } from "./server.ts";
import { createTestWeb } from "../tests/support/test_web.ts";

interface Setup extends AsyncDisposable {
  readonly views: FakeViews;
  readonly clock: FakeClock;
  readonly logged: Fields[];
  get(path: string, headers?: Record<string, string>, method?: string): Promise<Response>;
  json(path: string, headers?: Record<string, string>): Promise<{ status: number; body: Json }>;
}

// deno-lint-ignore no-explicit-any -- answers are looked into field by field
type Json = any;

function setup(options: FakeViewsOptions = {}, more: Partial<WebDeps> = {}): Setup {
  const clock = createFakeClock();
  const views = createFakeViews({ clock }, options);
  const logged: Fields[] = [];
  const logger: Logger = { ...silentLogger, error: (_, fields = {}) => void logged.push(fields) };
  const web = createTestWeb({
    views,
    clock,
    logger,
    hosts: ["localhost", "127.0.0.1:8080"],
    metricsText: () => Promise.resolve("gdr_leader 1\n"),
    ...more,
  });
  const get = async (path: string, headers: Record<string, string> = {}, method = "GET") =>
    await web.fetch(
      new Request(`http://localhost:8080${path}`, {
        method,
        headers: { accept: "text/html", ...headers },
      }),
    );
  return {
    views,
    clock,
    logged,
    get,
    async json(path, headers = {}) {
      const answer = await get(path, { accept: "application/json", ...headers });
      return { status: answer.status, body: await answer.json() };
    },
    [Symbol.asyncDispose]: () => web[Symbol.asyncDispose](),
  };
}

Deno.test("GET / is complete HTML without script", async () => {
  await using t = setup();
  const answer = await t.get("/");
  const html = await answer.text();
  assert.equal(answer.status, 200);
  assert.match(answer.headers.get("content-type") ?? "", /^text\/html/);
  for (const task of [796, 809, 812, 803, 800]) assert.ok(html.includes(`gitea-task-${task}`));
  for (const code of ["quota", "image_pull", "backend_cordoned", "awaiting_claim", "parked"]) {
    assert.ok(html.includes(`<code>${code}</code>`), code);
  }
  assert.ok(html.includes("watch pods: 410 Gone"), "last error of a source");
  assert.equal(html.match(/class="slot run"/g)?.length, 5);
  assert.equal(html.match(/class="slot free"/g)?.length, 1);
  assert.equal(html.match(/class="slot unknown"/g)?.length, 1);
  assert.equal(html.match(/class="slot parked"/g)?.length, 1);
});

Deno.test("GET / lists the waiting oldest first and the ended newest first", async () => {
  await using t = setup();
  const { body } = await t.json("/");
  const ids = (name: string) => body[name].items.map(({ taskId }: Json) => taskId);
  assert.deepEqual(ids("waiting"), ["796", "812", "813", "809", "810", "814", "811", "815"]);
  assert.deepEqual(ids("ended"), ["800", "799", "798", "797", "795"]);
});

Deno.test("GET / filters by what its URL says", async () => {
  await using t = setup();
  const tasks = async (query: string) => {
    const { body } = await t.json(`/?${query}`);
    return ["waiting", "running", "ended"].flatMap((name) =>
      body[name].items.map(({ taskId }: Json) => taskId)
    );
  };
  assert.deepEqual(await tasks("backend=vm&state=stored"), ["812", "813"]);
  assert.deepEqual(await tasks("repository=ACME/billing&state=parked"), ["796"]);
  assert.deepEqual(await tasks("repository=nobody/nothing"), []);
  const html = await (await t.get("/?backend=mars&state=stored&cursor=!")).text();
  assert.match(html, /Ignored Backend “mars”/);
  assert.match(html, /That page of the list is gone/);
});

Deno.test("GET / says what is normal and when it looks next when nothing waits", async () => {
  await using t = setup({ jobs: [] });
  const html = await (await t.get("/")).text();
  assert.match(html, /Nothing waits, and that is normal\./);
  assert.match(html, /Gitea is asked again in 2 s\./);
});

Deno.test("GET / names the leader on a standby and the sources that are silent", async () => {
  await using t = setup();
  const { leader, sources } = t.views.status();
  t.views.override({
    ready: false,
    leader: { ...leader, leading: false },
    sources: {
      ...sources,
      nats: { state: "down", since: null, ageMs: null, lastError: "refused" },
    },
  });
  const html = await (await t.get("/")).text();
  assert.match(
    html,
    /This replica is a standby\.<\/strong> It shows the same pages; gdr-7d4b9c6f5/,
  );
  assert.match(html, /Incomplete: NATS cannot be heard/);
  assert.match(html, /Recovery has not finished/);
});

Deno.test("GET / draws a bounded page of 10,000 waiting jobs", async () => {
  await using t = setup({ waiting: 10_000 });
  const html = await (await t.get("/")).text();
  assert.equal(html.match(/<td class="num pos">/g)?.length, 100);
  assert.match(html, /100 of 10,008/);
  const first = await (await t.get("/?state=stored")).text();
  const next = /href="(\/\?[^"]*cursor=[^"]*)"/.exec(first)?.[1]?.replaceAll("&amp;", "&");
  assert.ok(next);
  const second = await t.json(next);
  assert.equal(second.body.waiting.items.length, 100);
  assert.equal(second.body.first, false);
});

Deno.test("GET /assignments/:id shows phases, events by exact name, identity and last lines", async () => {
  await using t = setup();
  const html = await (await t.get("/assignments/gitea-task-799")).text();
  for (const name of ["executor_created", "identity_target_pending", "runner_claimed", "cleaned"]) {
    assert.ok(html.includes(`<bdi>${name}</bdi>`), name);
  }
  assert.match(html, /class="p50"/);
  assert.match(html, /class="p95"/);
  assert.match(html, /spiffe:\/\/ci\.example\.org\/ci\/acme\/billing\/integration/);
  assert.match(
    html,
    /href="https:\/\/git\.example\.org\/acme\/billing\/actions\/runs\/299\/jobs\/0"/,
  );
  assert.match(html, /exit code 137/);
  const { body } = await t.json("/assignments/gitea-task-799");
  assert.equal(body.assignment.events.length, 13);
});

Deno.test("GET /assignments/:id is 404 for an unknown, a malformed and an overlong id", async () => {
  await using t = setup();
  for (const id of ["gitea-task-1", "x", "gitea-task-0", `gitea-task-${"9".repeat(400)}`, "%00"]) {
    assert.equal((await t.get(`/assignments/${id}`)).status, 404, id);
    assert.equal((await t.json(`/assignments/${id}`)).body.title, "Not found", id);
    assert.equal((await t.json(`/api/v1/assignments/${id}`)).status, 404, id);
  }
});

Deno.test("pages draw every string from outside inert", async () => {
  await using t = setup();
  for (
    const path of [
      "/",
      "/assignments/gitea-task-814",
      "/?repository=%3Cscript%3Ealert(1)%3C/script%3E",
    ]
  ) {
    const html = await (await t.get(path)).text();
    assert.ok(!html.includes("<img src"), path);
    assert.ok(!/<script>|<\/script><script/.test(html), path);
    assert.ok(!/href="javascript:/i.test(html), path);
    // deno-lint-ignore no-control-regex -- none of these may be left
    assert.ok(!/[\u0000-\u0008\u000b-\u001f\u202a-\u202e]/.test(html), path);
    assert.ok(!/ style=| on[a-z]+="/.test(html.replaceAll(/&quot;|&lt;/g, "")), path);
  }
});

Deno.test("pages cannot be left by a string in the island's data", async () => {
  const assets = {
    ...NO_ASSETS,
    script: () => ({ src: "/assets/now-1.js", preload: [] }),
  };
  await using t = setup({}, { assets });
  const html = await (await t.get("/")).text();
  const block = /<script type="application\/json" id="page-data">(.*?)<\/script>/s.exec(html)?.[1];
  assert.ok(block !== undefined && !block.includes("<"));
  const { data } = JSON.parse(block);
  const job = data.waiting.items.find(({ taskId }: Json) => taskId === "814");
  assert.equal(job.spiffeId, `spiffe://ci.example.org/ci-fork/${HOSTILE.script}`);
  assert.equal(html.match(/<script/g)?.length, 2);
});

Deno.test("every response has the security headers, and a page a fresh nonce", async () => {
  await using t = setup();
  const nonces = new Set<string>();
  for (
    const path of ["/", "/", "/api/v1/status", "/nope", "/api/v1/nope", "/healthz", "/assets/x"]
  ) {
    const answer = await t.get(path);
    await answer.body?.cancel();
    const policy = answer.headers.get("content-security-policy") ?? "";
    assert.match(policy, /^default-src 'none'/, path);
    assert.match(policy, /frame-ancestors 'none'/, path);
    assert.ok(!policy.includes("unsafe"), path);
    assert.equal(answer.headers.get("x-content-type-options"), "nosniff", path);
    assert.equal(answer.headers.get("referrer-policy"), "no-referrer", path);
    assert.match(answer.headers.get("x-request-id") ?? "", /^[0-9a-f-]{36}$/, path);
    const nonce = /'nonce-([^']+)'/.exec(policy)?.[1];
    if (path === "/") nonces.add(nonce ?? "");
  }
  assert.equal(nonces.size, 2);
});

Deno.test("an unknown Host is refused with the allowed ones", async () => {
  await using t = setup();
  for (
    const host of ["evil.example", "localhost.evil.example", "127.0.0.1:9", "127.0.0.1", "[::1]"]
  ) {
    const answer = await t.get("/api/v1/status", { host });
    assert.equal(answer.status, 421, host);
    assert.deepEqual((await answer.json()).allowed, ["localhost", "127.0.0.1:8080"]);
  }
  for (const host of ["localhost", "LOCALHOST:1234", "127.0.0.1:8080"]) {
    assert.equal((await t.get("/healthz", { host })).status, 200, host);
  }
});

Deno.test("methods with an effect are refused with 405 and what is allowed", async () => {
  await using t = setup();
  for (const method of ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"]) {
    const answer = await t.get("/api/v1/backends/pod", {}, method);
    assert.equal(answer.status, 405, method);
    assert.equal(answer.headers.get("allow"), "GET, HEAD");
    assert.equal((await answer.json()).status, 405);
  }
  const head = await t.get("/", {}, "HEAD");
  assert.equal(head.status, 200);
  assert.equal(await head.text(), "");
});

Deno.test("another site's script is refused, a link from it is not", async () => {
  await using t = setup();
  const stream = "/api/v1/events";
  assert.equal((await t.get(stream, { origin: "https://evil.example" })).status, 403);
  assert.equal((await t.get(stream, { origin: "null" })).status, 403);
  const site = { "sec-fetch-site": "cross-site" };
  assert.equal((await t.get(stream, { ...site, "sec-fetch-mode": "cors" })).status, 403);
  assert.equal((await t.get("/", { ...site, "sec-fetch-mode": "navigate" })).status, 200);
  assert.equal((await t.get("/", { origin: "http://localhost:8080" })).status, 200);
});

Deno.test("a page is in the language of the cookie, then of Accept-Language", async () => {
  await using t = setup();
  const lang = async (headers: Record<string, string>) =>
    /<html lang="([^"]+)"/.exec(await (await t.get("/", headers)).text())?.[1];
  assert.equal(await lang({}), "en");
  assert.equal(await lang({ "accept-language": "de, zh-TW;q=0.8, en;q=0.5" }), "zh-CN");
  assert.equal(await lang({ "accept-language": "en, zh;q=0" }), "en");
  assert.equal(await lang({ "accept-language": "zh", cookie: "a=b; lang=en" }), "en");
  assert.equal(await lang({ "accept-language": "zh", cookie: "lang=xx" }), "zh-CN");
  const chosen = await t.get("/?state=stored&lang=zh-CN");
  assert.equal(chosen.status, 303);
  assert.equal(chosen.headers.get("location"), "/?state=stored");
  assert.match(chosen.headers.get("set-cookie") ?? "", /^lang=zh-CN; Path=\/; .*SameSite=Lax/);
});

Deno.test("a page that fails says its request id, and the log has the fault", async () => {
  const { views, clock } = setupViews();
  await using t = setup({}, {
    clock,
    views: { ...views, assignments: () => Promise.reject(new Error("secret detail")) },
  });
  const page = await t.get("/");
  const html = await page.text();
  assert.equal(page.status, 500);
  assert.ok(html.includes(page.headers.get("x-request-id") ?? "-"));
  assert.ok(!html.includes("secret detail"));
  const { status, body } = await t.json("/api/v1/assignments");
  assert.equal(status, 500);
  assert.equal(body.requestId, t.logged[1]?.requestId);
  assert.ok(!JSON.stringify(body).includes("secret detail"));
});

function setupViews() {
  const clock = createFakeClock();
  return { clock, views: createFakeViews({ clock }) };
}

Deno.test("probes and metrics answer here and on the health port", async () => {
  let ready = false;
  const deps = {
    metricsText: () => Promise.resolve("gdr_leader 1\n"),
    readiness: () => ({
      ready,
      role: "standby" as const,
      checks: [{ name: "nats", ok: ready, detail: ready ? null : "connection refused" }],
    }),
    logger: silentLogger,
  };
  await using t = setup({}, deps);
  const health = createProbes(deps);
  const ask = (path: string) => health.fetch(new Request(`http://10.1.2.3:8081${path}`));
  for (const get of [(path: string) => t.get(path), ask]) {
    assert.equal((await get("/healthz")).status, 200);
    const refused = await get("/readyz");
    assert.equal(refused.status, 503);
    const body = await refused.json();
    assert.equal(body.checks[0].detail, "connection refused");
    assert.equal(body.role, "standby");
    ready = true;
    assert.equal((await get("/readyz")).status, 200);
    ready = false;
    const metrics = await get("/metrics");
    assert.equal(await metrics.text(), "gdr_leader 1\n");
    assert.match(metrics.headers.get("content-type") ?? "", /version=0\.0\.4/);
  }
  assert.equal((await ask("/")).status, 404);
  assert.equal((await ask("/api/v1/status")).status, 404);
});
