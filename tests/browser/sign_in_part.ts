import { createHash } from "node:crypto";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { register } from "../../clients/gitea/register.ts";
import { Secret } from "../../lib/secret.ts";
import { createControllerPlace, startController } from "../support/controller_process.ts";
import { eventually } from "../support/eventually.ts";
import { createGiteaApi, type GiteaApi } from "../support/gitea_api.ts";
import { startPeers } from "../support/peers.ts";
import { hostileBranch } from "./branch_part.ts";
import { CHINESE, DARK, inspect, LIGHT, SMALL } from "./looks.ts";
import { check, fail, freePort, openPage, say } from "./support.ts";

/** What the parts of this suite share. */
interface Suite {
  readonly browser: Browser;
  readonly url: string;
  readonly giteaUrl: string;
  readonly folder: string;
  /** Calls the API with the token of an admin. */
  api(path: string): Promise<Response>;
}

const ADMIN_TOKEN = "token-of-this-test";
const PATIENCE = { timeout: 60_000 };
const WANTED = "/backends/pod?from=chat";

/**
 * People who sign in by a real Gitea at a real controller: each by the groups that Gitea tells of them
 * (1.26: `organization` and `organization:team`, in the ID token, for the scope `groups`). The dashboard
 * is another site to the browser than Gitea, as it is where it is used.
 */
export async function signIn(browser: Browser, folder: string): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const peers = stack.use(await startPeers({ which: ["gitea"], rootUrlHost: "127.0.0.1", say }));
  const { admin, rootUrl: giteaUrl, token } = peers.gitea;
  const gitea = createGiteaApi({
    url: giteaUrl,
    user: admin.name,
    password: admin.password,
    token,
  });
  await people(gitea);
  const port = freePort();
  const url = `http://localhost:${port}`;
  const place = stack.use(await createControllerPlace());
  const options = {
    stateDir: place.stateDir,
    env: {
      ...await runnerAt(gitea, giteaUrl),
      ...await applicationAt(gitea, giteaUrl, `${url}/sign-in/callback`),
      OIDC_ROLE_MAP: "ops=viewer,ops:oncall=operator",
      ADMIN_TOKENS: `robot:admin:${createHash("sha256").update(ADMIN_TOKEN).digest("hex")}`,
      ADMIN_PUBLIC_URL: url,
      ADMIN_LISTEN: `127.0.0.1:${port}`,
      // Of one that is started again, too.
      CAPABILITY_KEY: "k".repeat(32),
      POD_CAPACITY: "2",
    },
  };
  let controller = await startController(options);
  stack.defer(() => controller[Symbol.asyncDispose]());
  await controller.url();
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
  const api = (path: string) => fetch(`${url}${path}`, { headers });
  const suite = { browser, url, giteaUrl, folder, api };
  await ready(url);

  await looks(suite);
  const ended = await operator(suite);
  const living = await viewer(suite);
  await nobody(suite);
  await byToken(suite);
  await hostileBranch({ ...suite, token: ADMIN_TOKEN }, gitea);
  await controller.end("SIGKILL");
  controller = await startController(options);
  await controller.url();
  // It takes the lead of one that has not given it back, and what that one ran.
  await ready(url, 60_000);
  check("who has signed out is out after a restart, too", await answered(url, ended) === 401);
  check("who has not is still in", await answered(url, living) === 200);
  await controller.end("SIGTERM", { ms: 30_000 });
}

async function ready(url: string, timeoutMs = 30_000): Promise<void> {
  await eventually(async () => {
    const answer = await fetch(`${url}/readyz`);
    await answer.body?.cancel();
    return answer.ok;
  }, { what: "the controller to be ready", timeoutMs });
}

/** What the API answers to a cookie, as a copy of it would be sent. */
async function answered(url: string, cookie: string): Promise<number> {
  const answer = await fetch(`${url}/api/v1/status`, { headers: { cookie } });
  await answer.body?.cancel();
  return answer.status;
}

/** An operator, a viewer, and somebody without a group that counts. */
async function people(gitea: GiteaApi): Promise<void> {
  await gitea.rest("POST", "/orgs", { username: "ops" });
  for (const [user, team] of [["mira", "oncall"], ["vik", "readers"]] as const) {
    await gitea.createUser(user);
    const { id } = await gitea.rest("POST", "/orgs/ops/teams", {
      name: team,
      permission: "read",
      units: ["repo.code"],
    }) as { readonly id: number };
    await gitea.rest("PUT", `/teams/${id}/members/${user}`);
  }
  await gitea.createUser("noah");
}

async function runnerAt(gitea: GiteaApi, url: string): Promise<Record<string, string>> {
  const registrationToken = new Secret(await gitea.registrationToken());
  const { uuid, token } = await register(
    { url, registrationToken, name: "sign-in", labels: [] },
    { signal: AbortSignal.timeout(20_000) },
  );
  return { GITEA_URL: url, GITEA_RUNNER_UUID: uuid, GITEA_RUNNER_TOKEN: token.reveal() };
}

async function applicationAt(
  gitea: GiteaApi,
  issuer: string,
  redirectUri: string,
): Promise<Record<string, string>> {
  const made = await gitea.rest("POST", "/user/applications/oauth2", {
    name: "gitea-dynamic-runner",
    confidential_client: true,
    redirect_uris: [redirectUri],
  }) as { readonly client_id: string; readonly client_secret: string };
  return {
    OIDC_ISSUER: issuer,
    OIDC_CLIENT_ID: made.client_id,
    OIDC_CLIENT_SECRET: made.client_secret,
  };
}

/** Opens a page; what goes wrong on one of ours is a failure, on one of Gitea's it is Gitea's. */
async function open({ url }: Suite, context: BrowserContext, path: string): Promise<Page> {
  const page = await openPage(context, "about:blank", { quiet: true });
  page.on("console", (message) => {
    // An answer of 401 or 403 is what some of these pages are.
    if (message.type() !== "error" || message.text().startsWith("Failed to load resource")) return;
    if (message.location().url.startsWith(url)) fail(`console: ${message.text()}`);
  });
  await page.goto(`${url}${path}`, { waitUntil: "load" });
  return page;
}

const PROVIDER = "a[href^='/sign-in/oidc']";

async function looks(suite: Suite): Promise<void> {
  const forms = { light: LIGHT, dark: DARK, zh: CHINESE, phone: SMALL };
  for (const [name, options] of Object.entries(forms)) {
    const context = await suite.browser.newContext(options);
    const page = await open(suite, context, WANTED);
    check(
      `whom nobody knows is led to the page of sign-in (${name})`,
      page.url() === `${suite.url}/sign-in?to=${encodeURIComponent(WANTED)}`,
    );
    await inspect(page, suite.folder, `sign-in-${name}`);
    await context.close();
  }
}

/** From our page of sign-in by Gitea's pages and back. */
async function byGitea({ giteaUrl }: Suite, page: Page, user: string): Promise<void> {
  await page.locator(PROVIDER).click();
  await page.locator("#user_name").fill(user);
  await page.locator("#password").fill(`password-of-${user}-1`);
  await page.locator("form button", { hasText: "Sign In" }).first().click();
  await page.locator("#authorize-app").click();
  await page.waitForURL((at) => at.origin !== giteaUrl, PATIENCE);
}

async function sessionOf(context: BrowserContext): Promise<string> {
  const found = (await context.cookies()).find(({ name }) => name === "gdr-session");
  return found === undefined ? "" : `gdr-session=${found.value}`;
}

/** A POST with the cookie and the proof of a page, as a script on it could send. */
async function act(
  { url }: Suite,
  page: Page,
  path: string,
  body: Readonly<Record<string, unknown>>,
): Promise<number> {
  const proof = await page.locator("input[name=csrf]").first().inputValue();
  const response = await fetch(`${url}${path}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-csrf-token": proof,
      cookie: await sessionOf(page.context()),
    },
    body: JSON.stringify({ note: "by a script", ...body }),
  });
  await response.body?.cancel();
  return response.status;
}

/** Actor and action of the newest rows, as many as are expected; an answer does not wait for its row. */
async function audited(
  { api }: Suite,
  { query, rows }: { readonly query: string; readonly rows: number },
): Promise<readonly string[]> {
  return await eventually(async () => {
    const { items } = await (await api(`/api/v1/audit?${query}`)).json() as {
      readonly items: readonly { readonly actor: string; readonly action: string }[];
    };
    return items.length >= rows && items.map(({ actor, action }) => `${actor} ${action}`);
  }, {
    what: `${rows} rows of the audit with ${query}`,
    timeoutMs: PATIENCE.timeout,
    everyMs: 100,
  });
}

const CAPACITY = "/api/v1/backends/pod/capacity";
const formsOf = (page: Page) => page.locator("form[action^='/actions/']").count();

/** Resolves to the cookie of the session that was ended. */
async function operator(suite: Suite): Promise<string> {
  const { browser, url, folder } = suite;
  const context = await browser.newContext(LIGHT);
  const page = await open(suite, context, WANTED);
  await byGitea(suite, page, "mira");
  check("sign-in by Gitea leads to the page that was asked for", page.url() === url + WANTED);
  const who = await page.locator(".who").innerText();
  check(`the page says who looks: ${who.split("\n")[0]}`, who.includes("mira · operator"));
  await page.waitForSelector(".is-live", PATIENCE);
  await inspect(page, folder, "signed-in");
  const cookie = (await context.cookies()).find(({ name }) => name === "gdr-session");
  check("no script reads the session", cookie?.httpOnly === true && cookie.sameSite === "Lax");
  check("what was needed for sign-in is gone", (await context.cookies(url)).length === 1);

  const step = page.locator("details.step", {
    has: page.locator("summary", { hasText: "Cordon" }),
  });
  await step.locator("summary").click();
  await step.locator("input[name=note]").fill("by the operator");
  await step.locator("button[type=submit]").click();
  await page.waitForURL(/\/operations\//, PATIENCE);
  check(
    "an operator's form acts",
    (await audited(suite, { query: "result=done&actor=mira", rows: 1 })).includes("mira cordon"),
  );
  await page.goto(`${url}/backends/pod`);
  check(
    "an operator is not offered an admin's form",
    await page.locator("form[action$='/capacity']").count() === 0 && await formsOf(page) > 0,
  );
  check("nor can a script send it", await act(suite, page, CAPACITY, { capacity: 1 }) === 403);
  check(
    "that is audited",
    (await audited(suite, { query: "result=refused&actor=mira", rows: 1 })).includes(
      "mira capacity",
    ),
  );

  const old = await sessionOf(context);
  check("the cookie lets in before", await answered(url, old) === 200);
  await page.locator(".who button").click();
  await page.waitForURL(/\/sign-in$/, PATIENCE);
  check("signing out takes the cookie away", await sessionOf(context) === "");
  check("and the old cookie is nobody's", await answered(url, old) === 401);
  await page.goto(`${url}/backends/pod`);
  check("the page asks again who it is", page.url().startsWith(`${url}/sign-in?to=`));
  await context.close();
  return old;
}

/** Resolves to the cookie of a session that goes on. */
async function viewer(suite: Suite): Promise<string> {
  const context = await suite.browser.newContext({ ...LIGHT, javaScriptEnabled: false });
  const page = await open(suite, context, WANTED);
  await byGitea(suite, page, "vik");
  const who = await page.locator(".who").innerText();
  check("a viewer comes in without script", who.includes("vik · viewer"));
  let forms = 0;
  for (const path of ["/", "/backends/pod", "/canary", "/leader", "/executors", "/health"]) {
    await page.goto(suite.url + path);
    forms += await formsOf(page);
  }
  check("a viewer is offered no action on any page", forms === 0);
  await page.goto(`${suite.url}/backends/pod`);
  check("a viewer's script is refused", await act(suite, page, CAPACITY, { capacity: 1 }) === 403);
  check(
    "a viewer's script may not cordon",
    await act(suite, page, "/api/v1/backends/pod/cordon", {}) === 403,
  );
  check(
    "both are audited",
    (await audited(suite, { query: "actor=vik&result=refused", rows: 2 })).join() ===
      "vik cordon,vik capacity",
  );
  const cookies = await context.cookies();
  const living = await sessionOf(context);
  await context.close();
  // axe is a script.
  const scripted = await suite.browser.newContext(LIGHT);
  await scripted.addCookies(cookies);
  await inspect(await open(suite, scripted, "/backends/pod"), suite.folder, "signed-in-viewer");
  await scripted.close();
  return living;
}

/** Whom Gitea knows and the role map does not, and who has been at Gitea before. */
async function nobody(suite: Suite): Promise<void> {
  const context = await suite.browser.newContext(LIGHT);
  const page = await open(suite, context, WANTED);
  await byGitea(suite, page, "noah");
  check("who is in no group of the map stays outside", await sessionOf(context) === "");
  check("and is told why", await page.getByRole("alert").count() === 1);
  await inspect(page, suite.folder, "sign-in-no-role");
  const answered = page.url();
  await page.goto(answered);
  check(
    "an answer of Gitea is good for one try",
    await sessionOf(context) === "" && await page.getByRole("alert").count() === 1,
  );
  await context.close();

  const other = await suite.browser.newContext(DARK);
  const again = await open(suite, other, WANTED);
  await again.locator(PROVIDER).click();
  await again.locator("#user_name").fill("mira");
  await again.locator("#password").fill("password-of-mira-1");
  await again.locator("form button", { hasText: "Sign In" }).first().click();
  // Gitea asks once only: mira has agreed before.
  await again.waitForURL(suite.url + WANTED, PATIENCE);
  check("who has agreed before is not asked again", await sessionOf(other) !== "");
  await other.close();
}

async function byToken(suite: Suite): Promise<void> {
  const context = await suite.browser.newContext(SMALL);
  const page = await open(suite, context, WANTED);
  const send = async (token: string) => {
    await page.locator("input[name=token]").fill(token);
    await page.locator(".sign-in-form button").click();
    await page.waitForLoadState("load");
  };
  await send("wrong");
  check("a wrong token is refused", await page.getByRole("alert").count() === 1);
  await inspect(page, suite.folder, "sign-in-wrong-token");
  await page.locator("a.language").click();
  await page.waitForURL(/\/sign-in/, PATIENCE);
  check("the language can be changed there", await page.locator("html[lang=zh-CN]").count() === 1);
  await send(ADMIN_TOKEN);
  check(
    "a token lets in, and leads to the page that was asked for before all of that",
    page.url() === suite.url + WANTED &&
      (await page.locator(".who").innerText()).includes("robot · admin"),
  );
  await page.goto(`${suite.url}/backends/pod`);
  check(
    "an admin is offered capacity",
    await page.locator("form[action$='/capacity']").count() > 0,
  );
  await inspect(page, suite.folder, "signed-in-phone");
  await context.close();
}
