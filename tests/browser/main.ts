/**
 * The pages in a real browser. `--only=NAME[,NAME]` takes parts of it; `--list` names them;
 * `--pictures=FOLDER` keeps the screenshots there. Needs Chromium (`CHROMIUM`, default
 * /usr/bin/chromium), the real servers, root for `release`, and Python 3 with pip for `fuzz`. Exit
 * code 1 if anything fails.
 */
import type { Browser } from "playwright-core";
import { chooseParts, PART_OPTIONS, suiteOptions } from "../support/suite_parts.ts";
import { actions } from "./actions_part.ts";
import { attacks } from "./attacks_part.ts";
import { canary } from "./canary_part.ts";
import { drain } from "./drain_part.ts";
import { fuzz } from "./fuzz_part.ts";
import { type Grounds, startGrounds } from "./grounds.ts";
import { inspect, LIGHT, lookAt, LOOKS } from "./looks.ts";
import { many } from "./many_part.ts";
import { manyReal } from "./many_real_part.ts";
import { NAMES } from "./pictures.ts";
import { liveElsewhere, otherForms, withoutScript } from "./pages_part.ts";
import { real } from "./real_part.ts";
import { release } from "./release_part.ts";
import { signIn } from "./sign_in_part.ts";
import { stored } from "./stored_part.ts";
import {
  check,
  fail,
  finish,
  openPage,
  say,
  type Site,
  startBrowser,
  startSite,
} from "./support.ts";

const PARTS: readonly string[] = [
  ...["looks", "pages", "stored", "states", "many"],
  ...["release", "real", "attacks", "drain", "canary", "sign-in", "fuzz"],
];
const values = suiteOptions({
  ...PART_OPTIONS,
  pictures: { type: "string" },
});
const wanted = chooseParts(values, PARTS, say) ?? Deno.exit(0);
const wants = (part: string) => wanted.includes(part);
const folder = values.pictures ?? await Deno.makeTempDir({ prefix: "pages-" });
await Deno.mkdir(folder, { recursive: true });

await using browser = await startBrowser();
{
  await using site = startSite();
  if (wants("looks")) {
    const left = LOOKS.values();
    const lane = async () => {
      for (const look of left) await lookAt(browser, { site, folder }, look);
    };
    await Promise.all([lane(), lane(), lane()]);
    await absent(browser, site);
  }
  if (wants("pages")) {
    await pictures();
    await withoutScript(browser, site, folder);
    await otherForms(site);
    await actions(browser, site, folder);
    await live(browser, site);
    await liveElsewhere(browser, site);
    await keyboard(browser, site);
  }
}
if (wants("stored")) await stored(browser);
if (wants("states")) {
  await states(browser);
  await disconnect(browser);
}
if (wants("many")) {
  await many(browser, folder);
  await manyReal(browser, folder);
}
await realParts();
say(`screenshots in ${folder}`);
Deno.exitCode = finish();

/** What mostly waits for real servers goes on side by side, in lanes of about one length. */
async function realParts(): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const grounds = ["real", "drain", "canary", "attacks"].some(wants)
    ? stack.use(await startGrounds())
    : undefined;
  const on = (part: (browser: Browser, folder: string, grounds: Grounds) => Promise<void>) => () =>
    grounds === undefined ? Promise.resolve() : part(browser, folder, grounds);
  const lane = async (parts: Readonly<Record<string, () => Promise<void>>>) => {
    for (const [name, part] of Object.entries(parts)) {
      if (wants(name)) await timed(name, part);
    }
  };
  await Promise.all([
    lane({ release: () => release(browser, folder) }),
    lane({ real: on(real), attacks: on(attacks) }),
    lane({ drain: on(drain), canary: on(canary), "sign-in": () => signIn(browser, folder) }),
  ]);
  // Alone: it takes what there is of the machine.
  await lane({ fuzz });
}

/** One part; what it throws is a failure of it alone. */
async function timed(name: string, part: () => Promise<void>): Promise<void> {
  const since = performance.now();
  await part().catch((error: unknown) => {
    const cause = error instanceof Error && error.cause !== undefined ? `: ${error.cause}` : "";
    fail(`${name}: ${error instanceof Error ? error.stack : error}${cause}`);
  });
  say(`        part ${name} took ${((performance.now() - since) / 1_000).toFixed(0)} s`);
}

/** docs/screenshots/ has each page, in each form and in further states. */
async function pictures(): Promise<void> {
  const at = new URL("../../docs/screenshots/", import.meta.url);
  const there = new Set((await Array.fromAsync(Deno.readDir(at))).map(({ name }) => name));
  const index = await Deno.readTextFile(new URL("README.md", at));
  const missing = NAMES.filter((name) => !there.has(`${name}.png`));
  check(`${NAMES.length} pictures are there: ${missing.join(", ")}`, missing.length === 0);
  const unnamed = NAMES.filter((name) => !index.includes(`(${name}.png)`));
  check(`all pictures are in the index: ${unnamed.join(", ")}`, unnamed.length === 0);
}

async function absent(browser: Browser, site: Site): Promise<void> {
  const context = await browser.newContext(LIGHT);
  const page = await openPage(context, `${site.url}/assignments/gitea-task-1`, { quiet: true });
  await inspect(page, folder, "absent");
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
  await inspect(page, folder, "keyboard-help");
  await context.close();
}

/** Empty, standby, stale. */
async function states(browser: Browser): Promise<void> {
  await using site = startSite({ jobs: [] });
  const context = await browser.newContext(LIGHT);
  const page = await openPage(context, `${site.url}/`);
  await page.waitForSelector(".is-live");
  await inspect(page, folder, "empty");
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
  await inspect(page, folder, "standby-partial");
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
  await inspect(page, folder, "disconnected");
  await using second = startSite(
    { jobs: [{ task: 901, state: "running", job: "after", age: 1 }] },
    port,
  );
  await page.locator(".is-live").waitFor({ timeout: 35_000 });
  await page.getByText("gitea-task-901").first().waitFor({ timeout: 5000 });
  check("it is live again by itself, with the new server's data", second.url !== "");
  await context.close();
}
