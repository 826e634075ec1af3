/**
 * The pages in a real browser: `deno run -A tests/browser/main.ts [folder for screenshots]`.
 * Needs Chromium (`CHROMIUM`, default /usr/bin/chromium). Exit code 1 if anything fails.
 */
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import {
  check,
  checkAxe,
  fail,
  finish,
  openPage,
  say,
  type Site,
  startBrowser,
  startSite,
} from "./support.ts";

const folder = Deno.args[0] ?? await Deno.makeTempDir({ prefix: "pages-" });
await Deno.mkdir(folder, { recursive: true });

interface Look {
  readonly name: string;
  readonly path: string;
  readonly context: BrowserContextOptions;
}

const WIDE = { viewport: { width: 1280, height: 900 } };
const PHONE = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2 };
const LIGHT = { ...WIDE, colorScheme: "light" } as const;
const LOOKS: readonly Look[] = [
  { name: "now-light", path: "/", context: LIGHT },
  { name: "now-dark", path: "/", context: { ...WIDE, colorScheme: "dark" } },
  { name: "now-zh", path: "/", context: { ...LIGHT, locale: "zh-CN" } },
  { name: "now-phone", path: "/", context: { ...PHONE, colorScheme: "light" } },
  {
    name: "now-phone-dark-zh",
    path: "/",
    context: { ...PHONE, colorScheme: "dark", locale: "zh-CN" },
  },
  {
    name: "now-zoomed",
    path: "/",
    context: { ...LIGHT, viewport: { width: 640, height: 450 }, deviceScaleFactor: 2 },
  },
  { name: "now-filtered", path: "/?backend=vm&state=stored&repository=acme/web", context: LIGHT },
  { name: "job-running", path: "/assignments/gitea-task-803", context: LIGHT },
  {
    name: "job-failed",
    path: "/assignments/gitea-task-799",
    context: { ...WIDE, colorScheme: "dark" },
  },
  { name: "job-hostile", path: "/assignments/gitea-task-814", context: LIGHT },
  {
    name: "job-parked-zh",
    path: "/assignments/gitea-task-796",
    context: { ...LIGHT, locale: "zh-CN" },
  },
  {
    name: "job-phone",
    path: "/assignments/gitea-task-799",
    context: { ...PHONE, colorScheme: "light" },
  },
  { name: "absent", path: "/assignments/gitea-task-1", context: LIGHT },
];

await using browser = await startBrowser();
{
  await using site = startSite();
  for (const look of LOOKS) await lookAt(browser, site, look);
  await withoutScript(browser, site);
  await live(browser, site);
  await keyboard(browser, site);
}
await states(browser);
await disconnect(browser);
await many(browser);
say(`screenshots in ${folder}`);
Deno.exitCode = finish();

async function lookAt(browser: Browser, site: Site, look: Look): Promise<void> {
  const context = await browser.newContext(look.context);
  const page = await openPage(context, site.url + look.path, { quiet: look.name === "absent" });
  if (look.name !== "absent") await page.waitForSelector(".is-live");
  await inspect(page, look.name);
  await context.close();
}

async function inspect(page: Page, name: string): Promise<void> {
  await page.screenshot({ path: `${folder}/${name}.png`, fullPage: true });
  await checkAxe(page, name);
  check(`nothing sticks out sideways on ${name}`, await fits(page));
  check(`no string from outside runs on ${name}`, await page.title() !== "owned");
}

async function fits(page: Page): Promise<boolean> {
  return await page.evaluate(() =>
    document.documentElement.scrollWidth <= document.documentElement.clientWidth
  );
}

/** The same page with script turned off: complete, and filters work. */
async function withoutScript(browser: Browser, site: Site): Promise<void> {
  const context = await browser.newContext({ ...LIGHT, javaScriptEnabled: false });
  const page = await openPage(context, `${site.url}/`);
  check("the page has its jobs without script", await page.locator("a.job-link").count() >= 15);
  await page.selectOption("select[name=backend]", "vm");
  await page.click("button[type=submit]");
  check("filters work without script", page.url().includes("backend=vm"));
  check(
    "the filter holds",
    await page.locator("td.backend-cell", { hasText: "pod" }).count() === 0,
  );
  await page.click("a.language");
  check(
    "the language is kept without script",
    await page.locator("html").getAttribute("lang") === "zh-CN",
  );
  await page.screenshot({ path: `${folder}/without-script.png`, fullPage: true });
  await context.close();
}

/** A change arrives in place, once, and closes with the tab. */
async function live(browser: Browser, site: Site): Promise<void> {
  const context = await browser.newContext(LIGHT);
  const page = await openPage(context, `${site.url}/`);
  await page.waitForSelector(".is-live");
  const waiting = page.locator("section[aria-labelledby=waiting]");
  const running = page.locator("section[aria-labelledby=running]");
  const before = Number(await waiting.locator(".count").textContent());
  site.views.put({
    task: 900,
    state: "stored",
    job: "fresh",
    age: 0,
    reason: ["awaiting_slot", "new"],
  });
  await waiting.getByText("gitea-task-900").waitFor({ timeout: 3000 });
  check("a new job appears by itself", true);
  check("the count follows", Number(await waiting.locator(".count").textContent()) === before + 1);
  await page.focus("a.job-link[href='/assignments/gitea-task-900']");
  site.views.put({ task: 900, state: "running", job: "fresh", age: 1 });
  await running.getByText("gitea-task-900").first().waitFor({ timeout: 3000 });
  check("it moves on by itself", await waiting.getByText("gitea-task-900").count() === 0);
  await page.locator("a.slot", { hasText: "fresh" }).waitFor({ timeout: 3000 });
  check("its slot is drawn", true);
  site.views.drop(900);
  await running.getByText("gitea-task-900").waitFor({ state: "detached", timeout: 3000 });
  check("it goes by itself", true);
  await context.close();
}

async function keyboard(browser: Browser, site: Site): Promise<void> {
  const context = await browser.newContext(LIGHT);
  const page = await openPage(context, `${site.url}/`);
  await page.waitForSelector(".is-live");
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  const focused = await page.evaluate(() => document.activeElement?.getAttribute("href"));
  const second = await page.locator("a.job-link").nth(1).getAttribute("href");
  check("j goes to the next job", focused === second);
  await page.keyboard.press("/");
  check(
    "/ goes to the search",
    await page.evaluate(() => document.activeElement?.getAttribute("name")) === "repository",
  );
  await page.keyboard.press("Tab");
  await page.keyboard.press("Escape");
  await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
  await page.keyboard.press("?");
  await page.locator("dialog[open]").waitFor();
  await inspect(page, "keyboard-help");
  await context.close();
}

/** Empty, standby, stale. */
async function states(browser: Browser): Promise<void> {
  await using site = startSite({ jobs: [] });
  const context = await browser.newContext(LIGHT);
  const page = await openPage(context, `${site.url}/`);
  await page.waitForSelector(".is-live");
  await inspect(page, "empty");
  const { leader, sources } = site.views.status();
  site.views.override({
    ready: false,
    leader: { ...leader, leading: false, self: "gdr-7d4b9c6f5-q9rlm" },
    sources: {
      ...sources,
      nats: {
        state: "down",
        since: new Date(Date.now() - 95_000).toISOString(),
        ageMs: 95_000,
        lastError: "connect 10.0.3.7:4222: connection refused",
      },
      opensandbox: { state: "unused", since: null, ageMs: null, lastError: null },
      spire: { state: "unknown", since: null, ageMs: null, lastError: null },
    },
  });
  await page.reload();
  await page.waitForSelector(".is-live");
  await inspect(page, "standby-partial");
  await context.close();
}

/** The server goes: the page stays, says so after 15 s, and is live again when it is back. */
async function disconnect(browser: Browser): Promise<void> {
  const first = startSite();
  const port = Number(new URL(first.url).port);
  const context = await browser.newContext(LIGHT);
  const page = await openPage(context, `${first.url}/`, { quiet: true });
  await page.waitForSelector(".is-live");
  await first[Symbol.asyncDispose]();
  await page.locator(".is-lost").waitFor({ timeout: 5000 });
  check("no banner at once", await page.locator(".banner").count() === 0);
  await page.locator(".banner").waitFor({ timeout: 20_000 });
  check("rows stay and can be used", await page.locator("a.job-link").count() >= 15);
  await inspect(page, "disconnected");
  await using second = startSite(
    { jobs: [{ task: 901, state: "running", job: "after", age: 1 }] },
    port,
  );
  await page.locator(".is-live").waitFor({ timeout: 35_000 });
  await page.getByText("gitea-task-901").first().waitFor({ timeout: 5000 });
  check("it is live again by itself, with the new server's data", second.url !== "");
  await context.close();
}

/** 10,000 waiting: bounded page, quick first byte, small script. */
async function many(browser: Browser): Promise<void> {
  await using site = startSite({ waiting: 10_000 });
  const times: number[] = [];
  for (let i = 0; i < 20; i++) {
    const started = performance.now();
    const answer = await fetch(`${site.url}/`, { headers: { accept: "text/html" } });
    times.push(performance.now() - started);
    await answer.body?.cancel();
  }
  const p95 = times.sort((a, b) => a - b)[18] ?? Infinity;
  check(`first byte with 10,000 waiting: p95 ${p95.toFixed(0)} ms < 150 ms`, p95 < 150);
  const context = await browser.newContext(LIGHT);
  const page = await openPage(context, `${site.url}/`);
  await page.waitForSelector(".is-live");
  await inspect(page, "many");
  check("100 rows are drawn", await page.locator("table.waiting tbody tr").count() === 100);
  await page.getByRole("link", { name: "All of them" }).first().click();
  await page.getByRole("link", { name: "Next page" }).click();
  check("there is a next page", page.url().includes("cursor="));
  for (const path of ["/", "/assignments/gitea-task-10001"]) {
    const html = await (await fetch(site.url + path, { headers: { accept: "text/html" } })).text();
    const names = new Set(html.match(/\/assets\/[\w-]+\.js/g));
    let size = 0;
    for (const name of names) {
      const bytes = new Uint8Array(await (await fetch(site.url + name)).arrayBuffer());
      const gzipped = new Response(bytes).body?.pipeThrough(new CompressionStream("gzip"));
      size += (await new Response(gzipped ?? null).arrayBuffer()).byteLength;
    }
    if (names.size === 0) fail(`${path} has no script`);
    check(`script of ${path}: ${(size / 1024).toFixed(1)} KB gzipped <= 60 KB`, size <= 60 * 1024);
  }
  await context.close();
}
