/** Makes the pictures of docs/screenshots/: `deno run -A tests/browser/screenshots.ts`. */
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import type { Views } from "../../controller/views.ts";
import { changedViews } from "../fakes/changed_views.ts";
import { HOSTILE, SKETCHES } from "../fakes/sample_jobs.ts";
import type { FakeViews } from "../fakes/views.ts";
import { systemClock } from "../../lib/clock.ts";
import { createTestAccess } from "../support/test_access.ts";
import { CHINESE, DARK, LIGHT } from "./looks.ts";
import { openPage, say, type Site, startBrowser, startSite } from "./support.ts";

const FOLDER = decodeURIComponent(new URL("../../docs/screenshots/", import.meta.url).pathname);
const PHONE = { viewport: { width: 390, height: 844 }, colorScheme: "light" } as const;

interface Picture {
  readonly name: string;
  readonly path: string;
  readonly context: BrowserContextOptions;
  /** Opened before the picture is taken. */
  readonly open?: string;
}

const PICTURES: readonly Picture[] = [
  { name: "now", path: "/", context: LIGHT },
  { name: "now-dark", path: "/", context: DARK },
  { name: "now-chinese", path: "/", context: CHINESE },
  { name: "now-phone", path: "/", context: PHONE },
  { name: "job", path: "/assignments/gitea-task-803", context: LIGHT },
  { name: "job-failed", path: "/assignments/gitea-task-799", context: DARK },
  { name: "job-parked", path: "/assignments/gitea-task-796", context: LIGHT },
  { name: "executors", path: "/executors", context: LIGHT },
  { name: "backend", path: "/backends/pod", context: LIGHT, open: "text=Drain…" },
  { name: "backend-cordoned", path: "/backends/vm", context: DARK },
  { name: "backend-phone", path: "/backends/vm", context: PHONE },
  { name: "canary", path: "/canary", context: LIGHT, open: "text=Promote to vm…" },
  { name: "leader", path: "/leader", context: LIGHT },
  { name: "history", path: "/history?backend=vm", context: LIGHT },
  { name: "audit", path: "/audit", context: LIGHT },
  { name: "health", path: "/health", context: LIGHT },
  { name: "operation", path: "/operations/op-1", context: LIGHT },
  { name: "release", path: "/assignments/gitea-task-803/release", context: LIGHT },
  { name: "release-chinese", path: "/assignments/gitea-task-803/release", context: CHINESE },
];

const jobs = SKETCHES.filter(({ task }) => task !== 814);
await Deno.mkdir(FOLDER, { recursive: true });
await using browser = await startBrowser();
{
  await using site = startSite({ jobs, wrap: tamed });
  for (const picture of PICTURES) await take(browser, site, picture);
}
await signIn(browser);
await empty(browser);
await standby(browser);
await many(browser);
await disconnected(browser);
say(`pictures in ${FOLDER}`);

async function take(browser: Browser, site: Site, picture: Picture): Promise<void> {
  const context = await browser.newContext(picture.context);
  const page = await openPage(context, site.url + picture.path);
  if (!picture.path.endsWith("release")) await page.waitForSelector(".is-live");
  if (picture.open !== undefined) await page.locator(picture.open).first().click();
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
  const signOn = {
    start: () => Promise.reject(new Error("Only a picture")),
    finish: () => Promise.reject(new Error("Only a picture")),
  };
  const access = createTestAccess(systemClock, { signOn });
  await using site = startSite({ jobs, wrap: tamed, access });
  const forms = { "": LIGHT, "-dark": DARK, "-chinese": CHINESE, "-phone": PHONE };
  for (const [name, options] of Object.entries(forms)) {
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

async function empty(browser: Browser): Promise<void> {
  await using site = startSite({ jobs: [], wrap: tamed });
  await take(browser, site, { name: "empty", path: "/", context: LIGHT });
}

/** A replica that does not lead, and a server that is away. */
async function standby(browser: Browser): Promise<void> {
  await using site = startSite({ jobs, wrap: tamed });
  const { leader, sources } = site.views.status();
  site.views.override({
    leader: { ...leader, leading: false, self: "gdr-7d4b9c6f5-q9rlm" },
    sources: {
      ...sources,
      nats: {
        state: "down",
        since: new Date(Date.now() - 95_000).toISOString(),
        ageMs: 95_000,
        lastError: "connect 10.0.3.7:4222: connection refused",
      },
    },
  });
  await take(browser, site, { name: "standby", path: "/", context: LIGHT });
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

/** The sample without the strings that an attacker would choose: those are for tests. */
function tamed(views: FakeViews): Views {
  const tame = <T>(value: T): T => {
    let text = JSON.stringify(value);
    if (text === undefined) return value;
    for (const hostile of Object.values(HOSTILE)) {
      text = text.replaceAll(JSON.stringify(hostile).slice(1, -1), "");
    }
    return JSON.parse(text.replaceAll('"actor":""', '"actor":"mira"').replaceAll(' "', '"'));
  };
  return changedViews(views, tame);
}
