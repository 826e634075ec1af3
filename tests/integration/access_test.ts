import assert from "node:assert/strict";
import type { Action, ActionKind } from "../../controller/actions/action_kinds.ts";
import type { ActionRequest, Actions } from "../../controller/actions/actions.ts";
import type { Role } from "../../controller/model/role.ts";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { ROUTES } from "../../routes/mod.ts";
import { idOf } from "../contract/queue_suite.ts";
import { createFakeViews } from "../fakes/views.ts";
import { createTestAccess, createTestSeal, tokenOf } from "../support/test_access.ts";
import { createTestWeb } from "../support/test_web.ts";

const ID = idOf(799);
const FORM = { "content-type": "application/x-www-form-urlencoded" };
const JSON_BODY = { "content-type": "application/json" };
const OURS = { origin: "http://localhost:8080", "sec-fetch-site": "same-origin" };

interface Refusal {
  readonly kind: ActionKind;
  readonly target: string;
  readonly by: string;
}

function setup(options: Parameters<typeof createTestAccess>[1] = {}) {
  const clock = createFakeClock();
  const acted: Action[] = [];
  const refused: Refusal[] = [];
  const actions: Actions = {
    act(action) {
      acted.push(action);
      return Promise.resolve({ kind: "unavailable", detail: "Only a test" });
    },
    preview: () => undefined,
    tagOf: () => null,
    refused({ kind, target }, { actor }: ActionRequest) {
      refused.push({ kind, target, by: actor.name });
    },
  };
  const access = createTestAccess(clock, options);
  const web = createTestWeb({ views: createFakeViews({ clock }, {}), actions, clock, access });
  const send = async (path: string, init: RequestInit = {}) =>
    await web.fetch(new Request(`http://localhost:8080${path}`, init));
  const signIn = async (role: Role, to = "/") => {
    const answer = await send("/sign-in", {
      method: "POST",
      headers: { ...FORM, ...OURS },
      body: new URLSearchParams({ token: tokenOf(role), to }),
    });
    assert.equal(answer.status, 303, await answer.clone().text());
    const cookie = cookieOf(answer);
    const page = await (await send("/health", { headers: { cookie } })).text();
    return { answer, cookie, proof: /"proof":"([0-9a-f]{32})"/.exec(page)?.[1] ?? proofIn(page) };
  };
  return {
    acted,
    refused,
    clock,
    send,
    signIn,
    as: (role: Role) => ({ authorization: `Bearer ${tokenOf(role)}` }),
    [Symbol.asyncDispose]: () => web[Symbol.asyncDispose](),
  };
}

function cookieOf(answer: Response): string {
  const set = answer.headers.getSetCookie().find((each) => each.includes("gdr-session="));
  return set?.split(";", 1)[0] ?? "";
}

function proofIn(page: string): string {
  return /name="csrf" value="([0-9a-f]+)"/.exec(page)?.[1] ?? "";
}

const CORDON = "/api/v1/backends/pod/cordon";
const CORDON_FORM = "/actions/backends/pod/cordon";

Deno.test("nobody sees anything but probes, assets and the page of sign-in", async () => {
  await using t = setup();
  for (const route of Object.values(ROUTES)) {
    const path = route.path.replaceAll(/:\w+/g, "x");
    const method = route.kind === "action" ? "POST" : "GET";
    const answer = await t.send(path, { method });
    const open = path === "/healthz" || path === "/readyz";
    const page = method === "GET" && !path.startsWith("/api/") && path !== "/metrics";
    const expected = open ? 200 : page ? 303 : 401;
    assert.equal(answer.status, expected, path);
    if (expected === 401) {
      assert.equal(answer.headers.get("content-type"), "application/problem+json");
      assert.match(answer.headers.get("www-authenticate") ?? "", /^Bearer/);
    }
    await answer.body?.cancel();
  }
  assert.equal(
    (await t.send("/backends/pod?a=1")).headers.get("location"),
    "/sign-in?to=%2Fbackends%2Fpod%3Fa%3D1",
  );
  assert.deepEqual(t.acted, []);
});

Deno.test("a token lets in by its role; a wrong one is 401, and too many of those 429", async () => {
  await using t = setup();
  assert.equal((await t.send("/api/v1/status", { headers: t.as("viewer") })).status, 200);
  const wrong = { authorization: "Bearer wrong" };
  for (let count = 0; count < 10; count++) {
    const answer = await t.send("/api/v1/status", { headers: wrong });
    assert.equal(answer.status, 401);
    assert.match(answer.headers.get("www-authenticate") ?? "", /invalid_token/);
  }
  assert.equal((await t.send("/api/v1/status", { headers: wrong })).status, 429);
  assert.equal((await t.send("/api/v1/status", { headers: t.as("viewer") })).status, 200);
  for (const authorization of ["Basic YTpi", "Bearer", "Bearer a b", tokenOf("admin")]) {
    const answer = await t.send("/api/v1/status", { headers: { authorization } });
    assert.ok([401, 429].includes(answer.status), authorization);
  }
});

const ACTIONS: readonly (readonly [kind: ActionKind, path: string, body: unknown, needed: Role])[] =
  [
    ["cordon", CORDON, {}, "operator"],
    ["drain", "/api/v1/backends/pod/drain", {}, "operator"],
    ["resume", "/api/v1/backends/pod/resume", {}, "operator"],
    ["capacity", "/api/v1/backends/pod/capacity", { capacity: 1 }, "admin"],
    ["label", "/api/v1/backends/vm/label", { label: "vm" }, "admin"],
    ["cancel", `/api/v1/assignments/${ID}/cancel`, {}, "operator"],
    ["retry", `/api/v1/assignments/${ID}/retry`, {}, "operator"],
    ["release", `/api/v1/assignments/${ID}/release`, { tier: "forced" }, "operator"],
    ["release", `/api/v1/assignments/${ID}/release`, { tier: "forget", confirm: ID }, "admin"],
    ["undo", "/api/v1/operations/op-1/undo", {}, "operator"],
    ["step-down", "/api/v1/leader/step-down", {}, "admin"],
  ];

for (const [kind, path, body, needed] of ACTIONS) {
  Deno.test(`POST ${path.replace(ID, ":id")} ${JSON.stringify(body).replace(ID, ":id")} needs ${needed}`, async () => {
    for (const role of ["viewer", "operator", "admin"] as const) {
      await using t = setup();
      const answer = await t.send(path, {
        method: "POST",
        headers: { ...JSON_BODY, ...t.as(role) },
        body: JSON.stringify({ note: "n", ...body as object }),
      });
      const may = role === "admin" || role === needed;
      assert.equal(answer.status, may ? 503 : 403, role);
      assert.equal(answer.headers.get("content-type"), "application/problem+json");
      assert.deepEqual(t.acted.map((each) => each.kind), may ? [kind] : []);
      assert.deepEqual(
        t.refused.map((each) => [each.kind, each.by]),
        may ? [] : [[kind, `a-${role}`]],
      );
    }
  });
}

Deno.test("a viewer may take no action of any route, whatever its body", async () => {
  await using t = setup();
  for (const route of Object.values(ROUTES)) {
    if (route.kind !== "action") continue;
    const path = route.path.replace(/:id/, ID).replace(
      ":kind",
      route.path.includes("backends") ? "cordon" : "cancel",
    )
      .replace(":name", "pod");
    const headers = { ...t.as("viewer"), ...route.form ? FORM : JSON_BODY };
    const answer = await t.send(path, { method: "POST", headers, body: "{" });
    assert.equal(answer.status, 403, path);
    await answer.body?.cancel();
  }
  assert.deepEqual(t.acted, []);
  // One without a name is open to every operator, and in no audit.
  const actions = Object.values(ROUTES).flatMap((route) => route.kind === "action" ? [route] : []);
  const unnamed = actions.filter(({ named }) => named === null);
  assert.deepEqual(unnamed.map(({ path }) => path), ["/health/run"]);
  assert.equal(t.refused.length, actions.length - unnamed.length, "each is told to the audit");
});

Deno.test("what is refused at the entrance says what to do, and never what was sent", async () => {
  await using t = setup();
  const told = async (authorization: string | null) => {
    const answer = await t.send("/api/v1/status", {
      headers: authorization === null ? {} : { authorization },
    });
    const { detail } = await answer.json() as { readonly detail: string };
    return `${answer.status} ${detail}`;
  };
  assert.equal(
    await told(null),
    '401 Sign in at /sign-in, or send "Authorization: Bearer <token>": this request names nobody',
  );
  assert.equal(
    await told("Bearer wrong-secret"),
    '401 Send another token in "Authorization", or ask an admin to add its SHA-256 to ADMIN_TOKENS: ' +
      "this one is not there",
  );
  assert.equal(
    await told("wrong-secret"),
    '401 Send "Authorization: Bearer <token>": the header "Authorization" has another form',
  );
  for (let count = 0; count < 8; count++) await told("Bearer wrong-secret");
  assert.equal(
    await told("Bearer wrong-secret"),
    "429 Wait 3 s before the next try, with another token: more than 10 that are not known came from " +
      'your address ""',
  );
});

Deno.test("the page of sign-in says what is wrong with a try, and the way out", async () => {
  await using t = setup();
  const told = async () => {
    const answer = await t.send("/sign-in", {
      method: "POST",
      headers: { ...FORM, ...OURS },
      body: new URLSearchParams({ token: "wrong-secret" }),
    });
    const page = await answer.text();
    assert.doesNotMatch(page, /wrong-secret/);
    return /role="alert">([^<]*)</.exec(page)?.[1];
  };
  assert.match(
    await told() ?? "",
    /^This token is not one of ADMIN_TOKENS: check .*, or ask an admin/,
  );
  for (let count = 0; count < 9; count++) await told();
  assert.equal(
    await told(),
    "More than 10 attempts from your address: wait 3 s, then try again.",
  );
});

Deno.test("a session's forms act with its proof, and with no other", async () => {
  await using t = setup();
  const { cookie, proof } = await t.signIn("operator");
  const other = await t.signIn("operator");
  assert.notEqual(proof, "");
  assert.notEqual(other.proof, proof);
  for (const csrf of ["", other.proof, `${proof}0`]) {
    const answer = await t.send(CORDON_FORM, {
      method: "POST",
      headers: { ...FORM, ...OURS, cookie },
      body: new URLSearchParams({ note: "", csrf }),
    });
    assert.equal(answer.status, 403, csrf);
    await answer.body?.cancel();
  }
  assert.deepEqual(t.acted, []);
  assert.deepEqual(t.refused.map(({ kind, target, by }) => `${kind} ${target} ${by}`), [
    "cordon pod a-operator",
    "cordon pod a-operator",
    "cordon pod a-operator",
  ]);
  const good = await t.send(CORDON_FORM, {
    method: "POST",
    headers: { ...FORM, ...OURS, cookie },
    body: new URLSearchParams({ note: "", csrf: proof }),
  });
  await good.body?.cancel();
  assert.deepEqual(t.acted, [{ kind: "cordon", backend: "pod" }]);
});

Deno.test("the API by cookie wants the proof in a header", async () => {
  await using t = setup();
  const { cookie, proof } = await t.signIn("operator");
  const post = (headers: Record<string, string>) =>
    t.send(CORDON, {
      method: "POST",
      headers: { ...JSON_BODY, ...OURS, cookie, ...headers },
      body: JSON.stringify({ note: "", csrf: proof }),
    });
  assert.equal((await post({})).status, 403);
  assert.equal((await post({ "x-csrf-token": proof })).status, 503);
});

Deno.test("another origin, a text/plain body and a GET act on nothing", async () => {
  await using t = setup();
  const { cookie, proof } = await t.signIn("admin");
  const body = JSON.stringify({ note: "" });
  const own = { ...JSON_BODY, cookie, "x-csrf-token": proof };
  const foreign = [
    { origin: "https://evil.example" },
    { origin: "http://localhost:8080", "sec-fetch-site": "cross-site" },
    { origin: "null", "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-site" },
  ];
  for (const headers of foreign) {
    const answer = await t.send(CORDON, { method: "POST", headers: { ...own, ...headers }, body });
    assert.equal(answer.status, 403);
  }
  assert.deepEqual(t.refused.map(({ by }) => by), foreign.map(() => "a-admin"));
  for (
    const type of ["text/plain", "text/plain; application/json", "multipart/form-data; boundary=x"]
  ) {
    const headers = { ...own, "content-type": type };
    assert.equal((await t.send(CORDON, { method: "POST", headers, body })).status, 415);
  }
  for (const route of Object.values(ROUTES)) {
    if (route.kind !== "action") continue;
    const path = route.path.replaceAll(/:\w+/g, "x");
    const answer = await t.send(path, { headers: { cookie } });
    await answer.body?.cancel();
  }
  assert.equal((await t.send("/sign-out", { headers: { cookie } })).status, 405);
  assert.equal((await t.send("/api/v1/status", { headers: { cookie } })).status, 200);
  assert.deepEqual(t.acted, []);
});

Deno.test("a wrong Host is refused before anybody is let in", async () => {
  await using t = setup();
  for (const host of ["evil.example", "localhost.evil.example:8080"]) {
    const headers = { ...t.as("admin"), host };
    assert.equal((await t.send("/api/v1/status", { headers })).status, 421);
    assert.equal((await t.send("/sign-in", { headers: { host } })).status, 421);
  }
});

Deno.test("a forged, changed, doubled, foreign or old cookie is nobody's", async () => {
  await using t = setup();
  const { cookie } = await t.signIn("admin");
  const status = async (text: string) =>
    (await t.send("/api/v1/status", { headers: { cookie: text } })).status;
  assert.equal(await status(cookie), 200);
  const at = cookie.length - 5;
  const changed = cookie.slice(0, at) + (cookie[at] === "A" ? "B" : "A") + cookie.slice(at + 1);
  await using elsewhere = setup({ secret: "x".repeat(32) });
  const foreign = (await elsewhere.signIn("admin")).cookie;
  const seal = createTestSeal();
  const transaction = seal.seal("sign-in", {
    id: "x",
    proof: "x",
    name: "x",
    role: "admin",
    endsAt: Infinity,
  });
  const forged = [
    changed,
    foreign,
    `${cookie}; ${cookie}`,
    "gdr-session=",
    "gdr-session=admin",
    `gdr-session=${transaction}`,
    `gdr-session=${"A".repeat(100_000)}`,
  ];
  const past = { id: "x", proof: "x", name: "x", role: "admin", endsAt: t.clock.now() };
  forged.push(`gdr-session=${seal.seal("session", past)}`);
  for (const text of forged) assert.equal(await status(text), 401, text.slice(0, 80));
});

Deno.test("signing in again begins another session and ends the one before", async () => {
  await using t = setup();
  const first = await t.signIn("viewer");
  const again = await t.send("/sign-in", {
    method: "POST",
    headers: { ...FORM, ...OURS, cookie: first.cookie },
    body: new URLSearchParams({ token: tokenOf("admin") }),
  });
  assert.equal((await t.send("/api/v1/status", { headers: { cookie: first.cookie } })).status, 401);
  assert.equal(
    (await t.send("/api/v1/status", { headers: { cookie: cookieOf(again) } })).status,
    200,
  );
});

Deno.test("signing out needs the proof, and ends the session", async () => {
  await using t = setup();
  const { cookie, proof } = await t.signIn("viewer");
  const out = (csrf: string) =>
    t.send("/sign-out", {
      method: "POST",
      headers: { ...FORM, ...OURS, cookie },
      body: new URLSearchParams({ csrf }),
    });
  assert.equal((await out("x")).status, 403);
  assert.equal((await t.send("/api/v1/status", { headers: { cookie } })).status, 200);
  const answer = await out(proof);
  assert.match(answer.headers.getSetCookie().join(), /gdr-session=; .*Max-Age=0/);
  assert.equal((await t.send("/api/v1/status", { headers: { cookie } })).status, 401);
});

Deno.test("the session's cookie is for this host, and for no script", async () => {
  await using plain = setup();
  const said = (await plain.signIn("viewer")).answer.headers.getSetCookie()[0] ?? "";
  assert.match(
    said,
    /^gdr-session=[A-Za-z0-9_-]+; Path=\/; Max-Age=28800; HttpOnly; SameSite=Lax$/,
  );
  await using secure = setup({ publicUrl: "https://localhost" });
  const over = (await secure.signIn("viewer")).answer.headers.getSetCookie()[0] ?? "";
  assert.match(over, /^__Host-gdr-session=.*; Secure$/);
});

Deno.test("sign-in leads to paths of our own alone, and no header can be smuggled in", async () => {
  await using t = setup();
  const table = [
    ["/backends/pod?a=b", "/backends/pod?a=b"],
    ["https://evil.example/", "/"],
    ["//evil.example", "/"],
    ["/\\evil.example", "/"],
    ["/\t/evil.example", "/"],
    ["/a/..//evil.example", "/"],
    ["/.//evil.example", "/"],
    ["javascript:alert(1)", "/"],
    ["/x\r\nset-cookie: a=b", "/"],
    ["/x\nlocation: https://evil.example", "/"],
    ["/sign-out", "/"],
    ["", "/"],
    [`/${"a".repeat(3_000)}`, "/"],
  ] as const;
  for (const [to, expected] of table) {
    const { answer } = await t.signIn("viewer", to);
    assert.equal(answer.headers.get("location"), expected, to);
    assert.equal(answer.headers.getSetCookie().some((each) => each.startsWith("a=")), false);
    await t.clock.advance(10_000);
  }
});

Deno.test("sign-in by token is refused after ten attempts, and again possible later", async () => {
  await using t = setup();
  const attempt = async (token: string) => {
    const answer = await t.send("/sign-in", {
      method: "POST",
      headers: { ...FORM, ...OURS },
      body: new URLSearchParams({ token }),
    });
    await answer.body?.cancel();
    return answer.status;
  };
  for (let count = 0; count < 10; count++) assert.equal(await attempt("wrong"), 401);
  assert.equal(await attempt(tokenOf("admin")), 429);
  await t.clock.advance(3_000);
  assert.equal(await attempt(tokenOf("admin")), 303);
});

Deno.test("viewers see pages without forms of actions; who may not is offered nothing", async () => {
  await using t = setup();
  const formsOf = async (role: Role) => {
    const page = await (await t.send("/backends/pod", { headers: t.as(role) })).text();
    return [...page.matchAll(/action="([^"]+)"/g)].map((match) => match[1])
      .filter((path) => path?.startsWith("/actions/"));
  };
  assert.deepEqual(await formsOf("viewer"), []);
  const health = await (await t.send("/health", { headers: t.as("viewer") })).text();
  assert.equal(health.includes("/health/run"), false);
  assert.equal((await formsOf("operator")).includes("/actions/backends/pod/capacity"), false);
  assert.equal((await formsOf("operator")).includes(CORDON_FORM), true);
  assert.equal((await formsOf("admin")).includes("/actions/backends/pod/capacity"), true);
});
