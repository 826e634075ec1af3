import type { Browser, Page } from "playwright-core";
import { inspect, LIGHT, PAGES, PHONE, RESTS } from "./looks.ts";
import { scrollThrough, scrollToEnd } from "./scrolling.ts";
import { check, fail, openPage, startSite } from "./support.ts";

/** 10,000 waiting: bounded pages, small scripts, a list that scrolls to its end and drops no row. */
export async function many(browser: Browser, folder: string): Promise<void> {
  await using site = startSite({ waiting: 10_000 });
  const plain = await browser.newContext({ ...LIGHT, javaScriptEnabled: false });
  const page = await openPage(plain, `${site.url}/`);
  check("100 rows come without script", await rows(page) === 100);
  await page.getByRole("link", { name: "All of them" }).first().click();
  await page.getByRole("link", { name: "Next page" }).click();
  check("there is a next page", page.url().includes("cursor="));
  await plain.close();
  for (const [name, context] of [["many", LIGHT], ["many-phone", PHONE]] as const) {
    await scroll(browser, { url: site.url, folder, name, context });
  }
  for (const [name, path] of PAGES) await measureScript(site.url, path, name);
}

const rows = (page: Page) => page.locator("table.waiting tbody tr:not(.space)").count();

async function scroll(
  browser: Browser,
  { url, folder, name, context: options }: {
    readonly url: string;
    readonly folder: string;
    readonly name: string;
    readonly context: Parameters<Browser["newContext"]>[0];
  },
): Promise<void> {
  const context = await browser.newContext(options);
  const page = await openPage(context, `${url}/`);
  await page.waitForSelector(".virtual");
  await inspect(page, folder, name);
  check(`${name}: only what is seen is drawn (${await rows(page)} rows)`, await rows(page) < 80);
  const heights = await page.evaluate(() =>
    new Set(
      [...document.querySelectorAll("table.waiting tbody tr.row")]
        .map((row) => row.getBoundingClientRect().height),
    ).size
  );
  check(`${name}: all rows have one height`, heights === 1);
  await scrollToEnd(page);
  await page.getByText("gitea-task-19999").waitFor({ timeout: 30_000 });
  check(`${name}: the last of 10,000 is there`, true);
  // A telephone shows four at a time: there it would take minutes.
  if (options?.viewport?.width === LIGHT.viewport.width) {
    const { ids, total } = await scrollThrough(page);
    check(`${name}: scrolling through drops no row (${ids.size} of ${total})`, ids.size === total);
  }
  await context.close();
}

async function measureScript(url: string, path: string, name: string): Promise<void> {
  const answer = await fetch(url + path, { headers: { accept: "text/html" } });
  const names = new Set((await answer.text()).match(/\/assets\/[\w-]+\.js/g));
  let size = 0;
  for (const file of names) {
    const bytes = new Uint8Array(await (await fetch(url + file)).arrayBuffer());
    const zipped = new Response(bytes).body?.pipeThrough(new CompressionStream("gzip"));
    size += (await new Response(zipped ?? null).arrayBuffer()).byteLength;
  }
  if (names.size === 0 && !RESTS.has(name)) {
    fail(`${name} has no script`);
  }
  check(`script of ${name}: ${(size / 1024).toFixed(1)} KB gzipped <= 60 KB`, size <= 60 * 1024);
}
