import assert from "node:assert/strict";
import type { Actions } from "../../controller/actions/actions.ts";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { ROUTES } from "../../routes/mod.ts";
import { listenWeb } from "../../web/listen.ts";
import { createFakeViews } from "../fakes/views.ts";
import { createTestAccess, tokenOf } from "../support/test_access.ts";
import { createTestWeb } from "../support/test_web.ts";

const FORM = { "content-type": "application/x-www-form-urlencoded" };
const CHUNK = new Uint8Array(65_536).fill(0x61);
const MIB_10 = 10 * 1024 * 1024;

function setup() {
  const clock = createFakeClock();
  const acted: string[] = [];
  const actions: Actions = {
    act(action) {
      acted.push(action.kind);
      return Promise.resolve({ kind: "unavailable", detail: "Only a test" });
    },
    preview: () => undefined,
    tagOf: () => null,
    refused() {},
  };
  const access = createTestAccess(clock);
  const web = createTestWeb({
    views: createFakeViews({ clock }, {}),
    actions,
    clock,
    access,
    hosts: ["localhost", "127.0.0.1"],
  });
  const send = async (path: string, init: RequestInit = {}) =>
    await web.fetch(new Request(`http://localhost:8080${path}`, init));
  const post = (path: string, body: BodyInit, headers: Readonly<Record<string, string>> = {}) =>
    send(path, { method: "POST", body, headers: { ...FORM, ...headers } });
  return {
    acted,
    clock,
    web,
    send,
    post,
    as: (role: "viewer" | "operator" | "admin") => ({ authorization: `Bearer ${tokenOf(role)}` }),
    async session() {
      const signed = await post("/sign-in", `token=${tokenOf("admin")}`);
      return { cookie: signed.headers.getSetCookie()[0]?.split(";", 1)[0] ?? "" };
    },
    [Symbol.asyncDispose]: () => web[Symbol.asyncDispose](),
  };
}

/** Every address that reads a body, with who may send one there. */
const BODIES = [
  ["/sign-in", "nobody"],
  ["/sign-out", "nobody"],
  ...Object.values(ROUTES).flatMap((route) =>
    route.kind !== "action" ? [] : [[
      route.path.replace(":kind", route.path.includes("backends") ? "cordon" : "cancel")
        .replace(":id", "gitea-task-799").replace(":name", "pod"),
      route.form ? "form" : "json",
    ]]
  ),
] as const;

function headersOf(sender: string | undefined): Record<string, string> {
  if (sender === "nobody") return FORM;
  const type = sender === "form" ? FORM : { "content-type": "application/json" };
  return { ...type, authorization: `Bearer ${tokenOf("admin")}` };
}

Deno.test("a body of 10 MiB is refused everywhere, and not read to its end", async () => {
  await using t = setup();
  for (const [path = "", sender] of BODIES) {
    let sent = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (sent >= MIB_10) return controller.close();
        sent += CHUNK.length;
        controller.enqueue(CHUNK);
      },
    });
    const answer = await t.post(path, body, headersOf(sender));
    assert.equal(answer.status, 413, path);
    assert.equal(answer.headers.get("connection"), "close", path);
    assert.ok(sent <= 4 * CHUNK.length, `${path}: ${sent} bytes`);
    await answer.body?.cancel();
  }
  assert.deepEqual(t.acted, []);
});

Deno.test("a body that does not end is answered after ten seconds, everywhere", async () => {
  await using t = setup();
  for (const [path = "", sender] of BODIES) {
    const silent = new ReadableStream<Uint8Array>({ pull: () => new Promise(() => {}) });
    const answer = t.post(path, silent, headersOf(sender));
    await t.clock.advance(10_000);
    assert.equal((await answer).status, 408, path);
    await (await answer).body?.cancel();
  }
  assert.deepEqual(t.acted, []);
});

Deno.test("nobody's body is not waited for where one must be known", async () => {
  await using t = setup();
  const silent = new ReadableStream<Uint8Array>({ pull: () => new Promise(() => {}) });
  const answer = await t.post("/actions/backends/pod/cordon", silent);
  assert.equal(answer.status, 401);
});

Deno.test("nothing that a request says becomes a header of its own in the answer", async () => {
  await using t = setup();
  const tricks = [
    "%0d%0aset-cookie:%20a=b",
    "%0aset-cookie:a=b",
    "%E5%98%8A%E5%98%8Dset-cookie:a=b",
  ];
  const own = t.as("viewer");
  for (const trick of tricks) {
    const answers = [
      await t.send(`/sign-in?to=/${trick}`),
      await t.send(`/sign-in?lang=en&to=/${trick}`),
      await t.send(`/sign-in/oidc?to=/${trick}`),
      await t.send(`/${trick}`),
      await t.send(`/?lang=${trick}`, { headers: own }),
      await t.send(`/${trick}?lang=en`, { headers: own }),
      await t.send(`/audit/csv?actor=${trick}`, { headers: own }),
      await t.send(`/history?repository=${trick}&lang=zh-CN`, { headers: own }),
      await t.send(`/assignments/${trick}`, { headers: own }),
      await t.post("/sign-in", `token=${tokenOf("viewer")}&to=/${trick}`),
    ];
    for (const answer of answers) {
      assert.equal(answer.headers.getSetCookie().some((each) => each.startsWith("a=")), false);
      for (const [name, value] of answer.headers) {
        assert.doesNotMatch(value, /[\r\n\0]/, `${name} of ${trick}`);
      }
      assert.ok(answer.status < 500, `${answer.status} for ${trick}`);
      await answer.body?.cancel();
    }
    await t.clock.advance(10_000);
  }
});

/** What a client says itself: `fetch` would put these paths in order first. */
async function raw(
  port: number,
  target: string,
  { method = "GET", headers = {} }: {
    readonly method?: string;
    readonly headers?: Readonly<Record<string, string>>;
  } = {},
): Promise<{ readonly status: number; readonly text: string }> {
  using connection = await Deno.connect({ hostname: "127.0.0.1", port });
  const lines = [
    `${method} ${target} HTTP/1.1`,
    "host: localhost",
    "connection: close",
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...method === "POST" ? ["content-type: application/json", "content-length: 11"] : [],
  ];
  const body = method === "POST" ? '{"note":""}' : "";
  const bytes = new TextEncoder().encode(`${lines.join("\r\n")}\r\n\r\n${body}`);
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  try {
    for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
    const buffer = new Uint8Array(65_536);
    for (let read = await connection.read(buffer); read !== null;) {
      chunks.push(buffer.slice(0, read));
      read = await connection.read(buffer);
    }
  } catch (error) {
    // The server hangs up on what is no request.
    if (
      !(error instanceof Deno.errors.ConnectionReset || error instanceof Deno.errors.BrokenPipe)
    ) {
      throw error;
    }
  }
  const text = await new Blob(chunks).text();
  return { status: Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0), text };
}

const PATHS = [
  "//",
  "//evil.example/",
  "///evil.example/%2e%2e",
  "/\\evil.example",
  "/\\\\evil.example/..",
  "/%5c%5cevil.example",
  "/%2f%2fevil.example",
  "/%00",
  "/backends/pod%00.html",
  "/\u0001",
  "/%ff%fe",
  "/%",
  "/%zz",
  "/backends/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
  "/assets/../../../../etc/passwd",
  "/assets/..%2f..%2f..%2fetc%2fpasswd",
  "/assets/%2e%2e/api/v1/status",
  "/assets/..%2fapi%2fv1%2fstatus",
  "/assets/../api/v1/status",
  "/assets\\..\\api\\v1\\status",
  "/assets/;/../api/v1/status",
  "/healthz/../api/v1/status",
  "/healthz/..%2fapi/v1/status",
  "/healthz;/../api/v1/status",
  "/healthz%2f..%2fapi/v1/status",
  "/sign-in/../api/v1/status",
  "/sign-in%2f..%2fapi/v1/status",
  "//api/v1/status",
  "/api//v1/status",
  "/api/v1/./status",
  "/%61pi/v1/status",
  "/api/v1/status/",
  "/API/V1/STATUS",
  "/api/v1/status%3f",
  "/api/v1/status#/healthz",
  "http://evil.example/api/v1/status",
  "http://localhost//evil.example/",
  "*",
  `/${"a".repeat(15_000)}`,
  `/backends/${"%2e".repeat(4_000)}`,
  `/${"a/".repeat(7_000)}`,
  `/${"a".repeat(200_000)}`,
];

Deno.test("no spelling of a path lets nobody in, leads elsewhere or breaks anything", async () => {
  await using t = setup();
  await using listener = listenWeb(t.web, { hostname: "127.0.0.1", port: 0 });
  const { port } = listener.address;
  for (const path of PATHS) {
    const short = JSON.stringify(path.slice(0, 60));
    const stranger = await raw(port, path);
    // 0: it hung up on what is no request of HTTP.
    assert.ok(
      [0, 303, 400, 401, 404, 414, 421, 431].includes(stranger.status),
      `${short}: ${stranger.status}`,
    );
    const location = /^location: (.*)\r$/im.exec(stranger.text)?.[1];
    if (location !== undefined) {
      assert.match(location, /^\/sign-in(\?|$)/, short);
      const to = new URL(location, "http://localhost").searchParams.get("to") ?? "/";
      assert.equal(new URL(to, "http://localhost").host, "localhost", short);
    }
    assert.doesNotMatch(stranger.text, /root:x|"leader":|"backends":/, short);
    const known = await raw(port, path, { headers: t.as("admin") });
    assert.ok(known.status < 500, `${short}: ${known.status}`);
    assert.doesNotMatch(known.text, /root:x/, short);
    const away = /^location: (.*)\r$/im.exec(known.text)?.[1] ?? "/";
    assert.equal(new URL(away, "http://localhost/").host, "localhost", short);
    for (const [, href = ""] of known.text.matchAll(/ (?:href|action)="([^"]*)"/g)) {
      assert.equal(new URL(href, "http://localhost/").host, "localhost", `${short}: ${href}`);
    }
  }
  // It still answers.
  assert.equal((await raw(port, "/api/v1/status", { headers: t.as("viewer") })).status, 200);
});

Deno.test("no spelling of an action's path takes it without its role", async () => {
  await using t = setup();
  await using listener = listenWeb(t.web, { hostname: "127.0.0.1", port: 0 });
  const { port } = listener.address;
  const capacity = [
    "/api/v1/backends/pod/%63apacity",
    "/api/v1/backends/%70od/capacity",
    "/api/v1//backends/pod/capacity",
    "/api/v1/backends/pod/capacity/",
    "/api/v1/backends/pod%2fcapacity",
    "/api/v1/backends/x/../pod/capacity",
    "/api/v1/backends/pod/cordon/../capacity",
    "/%61pi/v1/backends/pod/capacity",
    "/healthz/../api/v1/backends/pod/capacity",
    "/api/v1/leader/%73tep-down",
    "/api/v1/leader/step-down?x=/cordon",
    "/api/v1\\leader\\step-down",
  ];
  for (const path of capacity) {
    const { status } = await raw(port, path, { method: "POST", headers: t.as("operator") });
    assert.ok([400, 403, 404, 405].includes(status), `${path}: ${status}`);
  }
  for (const path of ["/api/v1/backends/pod/%63ordon", "/api/v1/backends/%70od/cordon"]) {
    assert.equal((await raw(port, path, { method: "POST", headers: t.as("viewer") })).status, 403);
    assert.equal((await raw(port, path, { method: "POST" })).status, 401);
  }
  assert.deepEqual(t.acted, []);
});
