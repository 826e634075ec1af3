import assert from "node:assert/strict";
import { createIdentityProvider } from "../../clients/oidc/identity_provider.ts";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { type Fields, type Logger, silentLogger } from "../../lib/logger.ts";
import { Secret } from "../../lib/secret.ts";
import { createFakeViews } from "../fakes/views.ts";
import { startOidcProvider } from "../fakes/oidc_provider.ts";
import { createTestAccess } from "../support/test_access.ts";
import { createTestWeb } from "../support/test_web.ts";

const REDIRECT = "http://localhost:8080/sign-in/callback";

const PUBLIC = { id: "gdr", secret: null };

function setup(client: { readonly id: string; readonly secret: string | null } = PUBLIC) {
  const refusals: Fields[] = [];
  const clock = createFakeClock();
  const provider = startOidcProvider();
  provider.behaviour.claims = { preferred_username: "alice", groups: ["ops:oncall"] };
  const identities = createIdentityProvider({
    issuer: provider.issuer,
    clientId: client.id,
    clientSecret: client.secret === null ? null : new Secret(client.secret),
    redirectUri: REDIRECT,
    clock,
  });
  const roles = [{ group: "ops:oncall", role: "operator" }] as const;
  const access = createTestAccess(clock, { identities, roles });
  const web = createTestWeb({
    views: createFakeViews({ clock }, {}),
    clock,
    access,
    logger: recordingLogger(refusals),
  });
  const get = async (path: string, cookie = "") =>
    await web.fetch(new Request(`http://localhost:8080${path}`, { headers: { cookie } }));
  const cookieIn = (answer: Response, name: string) =>
    answer.headers.getSetCookie().find((each) => each.startsWith(`${name}=`))?.split(";")[0] ?? "";
  return {
    provider,
    get,
    clock,
    cookieIn,
    /** What the log said of the last sign-in that was refused. */
    why(): string {
      const error = refusals.at(-1)?.error;
      return error instanceof Error ? error.message : "";
    },
    async leave(to = "/leader") {
      const answer = await get(`/sign-in/oidc?to=${encodeURIComponent(to)}`);
      assert.equal(answer.status, 303);
      return { url: answer.headers.get("location") ?? "", cookie: cookieIn(answer, "gdr-sign-in") };
    },
    async [Symbol.asyncDispose]() {
      await web[Symbol.asyncDispose]();
      await provider[Symbol.asyncDispose]();
    },
  };
}

/** Keeps what is warned about. */
function recordingLogger(kept: Fields[]): Logger {
  const logger: Logger = {
    ...silentLogger,
    warn: (_message, fields = {}) => void kept.push(fields),
    child: () => logger,
  };
  return logger;
}

Deno.test("sign-in at a provider gives the role of the groups, and leads to where it began", async () => {
  await using t = setup();
  const { url, cookie } = await t.leave();
  const asked = new URL(url).searchParams;
  assert.equal(asked.get("redirect_uri"), REDIRECT);
  assert.equal(asked.get("code_challenge_method"), "S256");
  assert.ok((asked.get("state") ?? "").length > 20 && (asked.get("nonce") ?? "").length > 20);
  const back = await t.get(`/sign-in/callback?${t.provider.approve(url)}`, cookie);
  assert.equal(back.status, 303);
  assert.equal(back.headers.get("location"), "/leader");
  assert.equal(t.provider.asked[0]?.get("redirect_uri"), REDIRECT);
  const page = await (await t.get("/leader", t.cookieIn(back, "gdr-session"))).text();
  assert.match(page, /alice · operator/);
});

Deno.test("an application with a secret shows id and secret as Gitea compares them", async () => {
  // Of the form that Gitea gives them.
  const client = { id: "2b1042e8-2bf4-499f-b4ba-e109229b21a8", secret: "gto_abc.def-ghi*" };
  await using t = setup(client);
  t.provider.behaviour.credentials = `${client.id}:${client.secret}`;
  const { url, cookie } = await t.leave();
  const back = await t.get(`/sign-in/callback?${t.provider.approve(url)}`, cookie);
  assert.equal(back.status, 303);
  t.provider.behaviour.credentials = `${client.id}:another`;
  const again = await t.leave();
  const refused = await t.get(`/sign-in/callback?${t.provider.approve(again.url)}`, again.cookie);
  assert.equal(refused.status, 403);
  const page = await refused.text();
  assert.equal(page.includes("gto_"), false);
  assert.equal(
    t.why(),
    `Take the answer of "${t.provider.issuer}": ResponseBodyError OAUTH_RESPONSE_BODY_ERROR ` +
      "invalid_client; there the application needs the id of OIDC_CLIENT_ID, the secret of " +
      `OIDC_CLIENT_SECRET and the redirect URI "${REDIRECT}"`,
  );
  // Neither the code nor the way back here is left on the page.
  assert.match(page, /class="language" href="\/sign-in\?to=%2Fleader&amp;lang=zh-CN"/);
});

Deno.test("what comes back from a provider proves nobody when anything in it is wrong", async () => {
  await using t = setup();
  const refused = async (query: URLSearchParams, cookie: string, status = 403) => {
    const answer = await t.get(`/sign-in/callback?${query}`, cookie);
    assert.equal(answer.status, status);
    assert.equal(t.cookieIn(answer, "gdr-session"), "");
    await answer.body?.cancel();
    await t.clock.advance(3_000);
  };
  const first = await t.leave();
  const query = t.provider.approve(first.url);
  // Without the cookie of this browser, or with another browser's.
  await refused(query, "");
  assert.equal(
    t.why(),
    "Begin again at /sign-in: this browser has begun none within 10 minutes, or its cookie " +
      '"gdr-sign-in" did not come back',
  );
  await refused(query, (await t.leave()).cookie);
  await refused(new URLSearchParams({ code: query.get("code") ?? "", state: "x" }), first.cookie);
  await refused(
    new URLSearchParams({ error: "access_denied", state: query.get("state") ?? "" }),
    first.cookie,
  );
  for (
    const wrong of [
      { nonce: "another" },
      { foreignKey: true },
      { claims: { aud: "another" } },
      { claims: { iss: "https://another.example" } },
      { claims: { exp: 1 } },
      { claims: { preferred_username: "bob", groups: ["dev"] } },
    ]
  ) {
    Object.assign(t.provider.behaviour, { nonce: null, foreignKey: false }, wrong);
    const begun = await t.leave();
    await refused(t.provider.approve(begun.url), begun.cookie);
  }
  Object.assign(t.provider.behaviour, { nonce: null, foreignKey: false });
  t.provider.behaviour.claims = { groups: ["ops:oncall"] };
  const late = await t.leave();
  const answer = t.provider.approve(late.url);
  await t.clock.advance(600_000);
  await refused(answer, late.cookie);
});

Deno.test("a provider that cannot be reached is named, with the setting that says where it is", async () => {
  const t = setup();
  const { issuer } = t.provider;
  await t.provider[Symbol.asyncDispose]();
  const answer = await t.get("/sign-in/oidc");
  assert.equal(answer.status, 503);
  const page = await answer.text();
  assert.match(page, /role="alert">Signing in with gitea\.example\.org has failed\. Try again;/);
  assert.ok(t.why().startsWith(`Begin a sign-in at "${issuer}": TypeError`), t.why());
  assert.match(
    t.why(),
    /; OIDC_ISSUER must be its address, as it calls itself, and this machine must reach it$/,
  );
  await t[Symbol.asyncDispose]();
});

Deno.test("who has no role is told by which name the provider knows them, and whom to ask", async () => {
  await using t = setup();
  const name = `<b>${"m".repeat(300)}\u202e`;
  t.provider.behaviour.claims = { preferred_username: name, groups: ["dev"] };
  const { url, cookie } = await t.leave();
  const answer = await t.get(`/sign-in/callback?${t.provider.approve(url)}`, cookie);
  assert.equal(answer.status, 403);
  const page = await answer.text();
  assert.match(
    page,
    /knows you as &lt;b>m+, but none of your groups has a role here: ask an admin/,
  );
  assert.equal(page.includes("<b>m") || page.includes("\u202e"), false);
});

Deno.test("a provider whose answer never ends is not read to its end, and named", async () => {
  for (const path of ["/.well-known/openid-configuration", "/token", "/keys"]) {
    await using t = setup();
    if (path.startsWith("/.")) t.provider.behaviour.endless = path;
    const before = Deno.memoryUsage().rss;
    const answer = await (async () => {
      if (path.startsWith("/.")) return await t.get("/sign-in/oidc");
      const { url, cookie } = await t.leave();
      t.provider.behaviour.endless = path;
      return await t.get(`/sign-in/callback?${t.provider.approve(url)}`, cookie);
    })();
    await answer.body?.cancel();
    assert.equal(answer.status, 503, path);
    assert.match(t.why(), /longer than 1 MiB; OIDC_ISSUER must be/, path);
    assert.ok(Deno.memoryUsage().rss - before < 200 * 2 ** 20, path);
  }
});
