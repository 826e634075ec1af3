import type { Browser, Page } from "playwright-core";
import { poisoned } from "../fakes/poisoned_views.ts";
import { LIGHT, PAGES, RESTS } from "./looks.ts";
import { check, openPage, startSite } from "./support.ts";

/**
 * A script in every text that comes from outside, on every page, as it is drawn by the server, by the
 * islands that take it over, and by what the event stream brings later.
 */
export async function stored(browser: Browser): Promise<void> {
  await using site = startSite({ wrap: poisoned });
  const context = await browser.newContext(LIGHT);
  // The page of the API shows nothing from outside.
  for (const [name, path] of PAGES.filter(([name]) => name !== "api")) {
    // What a release would do is told by the actions: of a job that is hostile in the sample already.
    const hostile = path.replace(/gitea-task-\d+(?=\/)/, "gitea-task-814");
    const page = await openPage(context, site.url + hostile);
    if (!RESTS.has(name)) await page.waitForSelector(".is-live");
    check(`a stored script is text on ${name}`, await harmless(page));
    if (name === "now") {
      site.views.put({ task: 950, state: "running", job: "late", age: 1 });
      await page.locator("a[href='/assignments/gitea-task-950']").first().waitFor();
      check("a stored script of the event stream is text", await harmless(page));
    }
    await page.close();
  }
  await context.close();
}

/** It is shown, it has made no element, and has not run. */
async function harmless(page: Page): Promise<boolean> {
  const made = await page.locator("img, a[href^='javascript:'], [onerror]").count();
  const shown = (await page.locator("main").innerText()).includes("<img src=x");
  return made === 0 && shown && await page.title() !== "owned";
}
