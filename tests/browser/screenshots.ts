/** Makes the pictures of docs/screenshots/: `deno run -A tests/browser/screenshots.ts [name...]`. */
import type { Browser, Page } from "playwright-core";
import type { BackendView, Views } from "../../controller/views/views.ts";
import { changedViews } from "../fakes/changed_views.ts";
import { HOSTILE, SKETCHES } from "../fakes/sample_jobs.ts";
import type { FakeViews } from "../fakes/views.ts";
import { systemClock } from "../../lib/clock.ts";
import { createTestAccess, tokenOf } from "../support/test_access.ts";
import { LIGHT } from "./looks.ts";
import { DRAINING, EMPTY, FORMS, type Picture, PICTURES, STANDBY, VIEWER } from "./pictures.ts";
import { openPage, say, type Site, startBrowser, startSite } from "./support.ts";

const FOLDER = decodeURIComponent(new URL("../../docs/screenshots/", import.meta.url).pathname);

const html = JSON.stringify(HOSTILE.html);
/** In JSON: what is a field's whole text gets a word, and what was added to one goes. */
const PLAIN: readonly (readonly [string, string])[] = [
  [`"actor":${html}`, `"actor":"mira"`],
  [`"job":${html}`, `"job":"smoke"`],
  [`"note":${html}`, `"note":"one node less"`],
  [`"detail":${html}`, `"detail":"no answer in 10 s"`],
  [JSON.stringify(HOSTILE.rtl), `"acme/probe"`],
  [JSON.stringify('=HYPERLINK("http://x")'), `"more slots, please"`],
  ...Object.values(HOSTILE).map((each) => [JSON.stringify(each).slice(1, -1), ""] as const),
];

const wanted = (name: string) => Deno.args.length === 0 || Deno.args.includes(name);
const jobs = SKETCHES.filter(({ task }) => task !== 814);
await Deno.mkdir(FOLDER, { recursive: true });
await using browser = await startBrowser();
{
  await using site = startSite({ jobs, wrap: tamed });
  for (const picture of PICTURES) await take(browser, site, picture);
}
if (Object.keys(FORMS).some((form) => wanted(`sign-in${form}`))) await signIn(browser);
await viewer(browser);
await empty(browser);
await standby(browser);
await draining(browser);
if (wanted("refused")) await refused(browser);
if (wanted("ten-thousand")) await many(browser);
if (wanted("disconnected")) await disconnected(browser);
say(`pictures in ${FOLDER}`);

async function take(browser: Browser, site: Site, picture: Picture): Promise<void> {
  if (!wanted(picture.name)) return;
  const context = await browser.newContext(picture.context);
  const page = await openPage(context, site.url + picture.path, { quiet: true });
  // Pages that rest have no mark.
  if (await page.locator("script[src]").count() > 0) await page.waitForSelector(".is-live");
  if (picture.open !== undefined) {
    const part = page.locator("details", { has: page.locator(picture.open) })
      .or(page.locator(picture.open).and(page.locator("details")));
    await part.first().locator("summary").click();
  }
  await save(page, picture.name);
  await context.close();
}

async function save(page: Page, name: string, fullPage = true): Promise<void> {
  const path = `${FOLDER}${name}.png`;
  await page.screenshot({ path, fullPage });
  say(`${name}: ${Math.round((await Deno.stat(path)).size / 1024)} KB`);
}

/** The page before all others, as it is and after a wrong token. */
async function signIn(browser: Browser): Promise<void> {
  const identities = {
    start: () => Promise.reject(new Error("Only a picture")),
    finish: () => Promise.reject(new Error("Only a picture")),
  };
  const access = createTestAccess(systemClock, { identities });
  await using site = startSite({ jobs, wrap: tamed, access });
  for (const [name, options] of Object.entries(FORMS)) {
    const context = await browser.newContext(options);
    const page = await openPage(context, `${site.url}/backends/pod`, { quiet: true });
    await save(page, `sign-in${name}`);
    if (name === "") {
      await page.locator("input[name=token]").fill("wrong");
      await page.locator(".sign-in-form button").click();
      await page.getByRole("alert").waitFor();
      await save(page, "sign-in-wrong-token");
    }
    await context.close();
  }
}

/** What somebody sees who may only look. */
async function viewer(browser: Browser): Promise<void> {
  await using site = startSite({ jobs, wrap: tamed, access: createTestAccess(systemClock) });
  for (const picture of VIEWER) {
    const extraHTTPHeaders = { authorization: `Bearer ${tokenOf("viewer")}` };
    await take(browser, site, { ...picture, context: { ...picture.context, extraHTTPHeaders } });
  }
}

async function empty(browser: Browser): Promise<void> {
  await using site = startSite({ jobs: [], wrap: tamed });
  for (const picture of EMPTY) await take(browser, site, picture);
}

/** A drain of `pod` at half time. */
async function draining(browser: Browser): Promise<void> {
  const drain = {
    ...{ by: "mira", note: "new nodes", hold: false, remaining: 9 },
    at: new Date(Date.now() - 200_000).toISOString(),
    deadline: new Date(Date.now() + 1_600_000).toISOString(),
  };
  const drained = (backend: BackendView): BackendView =>
    backend.name === "pod" ? { ...backend, drain } : backend;
  const wrap = (views: FakeViews): Views => {
    const tame = tamed(views);
    const status = () => ({ ...tame.status(), backends: tame.backends().map(drained) });
    return {
      ...tame,
      status,
      backends: () => status().backends,
      backend: (name) => status().backends.find((backend) => backend.name === name),
    };
  };
  await using site = startSite({ jobs, wrap });
  for (const picture of DRAINING) await take(browser, site, picture);
}

/** A form that came too late. */
async function refused(browser: Browser): Promise<void> {
  await using site = startSite({ jobs, wrap: tamed });
  const context = await browser.newContext(LIGHT);
  const page = await openPage(context, `${site.url}/assignments/gitea-task-796`, { quiet: true });
  site.actions.answer({
    kind: "stale",
    detail: "Look again: it has changed since you looked",
    current: { id: "gitea-task-796", state: "running", repository: "acme/billing" },
  });
  await page.getByRole("button", { name: "Retry now" }).click();
  await page.getByText("Nothing was done").waitFor();
  await save(page, "refused");
  await context.close();
}

/** A replica that does not lead, and a server that is away. */
async function standby(browser: Browser): Promise<void> {
  const away = {
    state: "down",
    since: new Date(Date.now() - 95_000).toISOString(),
    ageMs: 95_000,
    lastError: "connect 10.0.3.7:4222: connection refused",
  } as const;
  const wrap = (views: FakeViews): Views => {
    const tame = tamed(views);
    const leader = () => ({ ...tame.leader(), leading: false, self: "gdr-7d4b9c6f5-q9rlm" });
    return {
      ...tame,
      leader,
      status() {
        const status = tame.status();
        return { ...status, leader: leader(), sources: { ...status.sources, nats: away } };
      },
    };
  };
  await using site = startSite({ jobs, wrap });
  for (const picture of STANDBY) await take(browser, site, picture);
}

async function many(browser: Browser): Promise<void> {
  await using site = startSite({ jobs, waiting: 10_000, wrap: tamed });
  const context = await browser.newContext(LIGHT);
  const page = await openPage(context, `${site.url}/?list=waiting`);
  await page.waitForSelector(".virtual");
  await page.evaluate(() => {
    const box = document.querySelector(".virtual");
    if (box !== null) box.scrollTop = box.scrollHeight / 2;
  });
  await page.locator(".blank").first().waitFor({ state: "detached", timeout: 30_000 });
  await save(page, "ten-thousand", false);
  await context.close();
}

async function disconnected(browser: Browser): Promise<void> {
  const site = startSite({ jobs, wrap: tamed });
  const context = await browser.newContext(LIGHT);
  const page = await openPage(context, `${site.url}/`, { quiet: true });
  await page.waitForSelector(".is-live");
  await site[Symbol.asyncDispose]();
  await page.locator(".banner").waitFor({ timeout: 60_000 });
  await save(page, "disconnected", false);
  await context.close();
}

/** The sample with plausible words in place of strings that an attacker would choose: those are for tests. */
function tamed(views: FakeViews): Views {
  const tame = <T>(value: T): T => {
    let text = JSON.stringify(value);
    if (text === undefined) return value;
    for (const [hostile, word] of PLAIN) text = text.replaceAll(hostile, word);
    return JSON.parse(text.replaceAll(' "', '"'));
  };
  return changedViews(views, tame);
}
