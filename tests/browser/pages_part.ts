import type { Browser } from "playwright-core";
import { LIGHT, PAGES } from "./looks.ts";
import { check, openPage, type Site } from "./support.ts";

/** Every page with script turned off: complete, and links, filters and language work. */
export async function withoutScript(browser: Browser, site: Site, folder: string): Promise<void> {
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
  await page.screenshot({ path: `${folder}/without-script.png`, fullPage: true });
  for (const [name, path] of PAGES) {
    await page.goto(site.url + path);
    const text = await page.locator("main").innerText();
    check(`${name} is complete without script`, text.length > 80 && !text.includes("undefined"));
    const links = await page.locator("header nav a").count();
    check(`${name} leads to all other pages`, links === 9);
  }
  await page.goto(`${site.url}/audit`);
  await page.selectOption("select[name=result]", "refused");
  await page.click("button[type=submit]");
  check("the audit is filtered without script", await page.locator("tbody tr").count() === 1);
  await page.click("a.language");
  check(
    "the language is kept without script",
    await page.locator("html").getAttribute("lang") === "zh-CN",
  );
  check("and so is the filter", page.url().includes("result=refused"));
  await context.close();
}

/** The same address answers JSON, and lists can be kept as files. */
export async function otherForms(site: Site): Promise<void> {
  for (const [name, path] of PAGES) {
    const answer = await fetch(site.url + path, { headers: { accept: "application/json" } });
    const body: unknown = await answer.json();
    check(`${name} answers JSON`, answer.ok && typeof body === "object" && body !== null);
  }
  for (const path of ["/audit/csv", "/history/csv"]) {
    const answer = await fetch(site.url + path);
    const lines = (await answer.text()).split("\r\n");
    check(
      `${path} is a file`,
      answer.headers.get("content-disposition")?.includes(".csv") ?? false,
    );
    check(
      `${path} has a line for each row`,
      lines.length > 3 && lines[0]?.includes("at,") === true,
    );
    const formula = lines.some((line) => /(^|,)"?=/.test(line));
    check(`${path} has no cell that a program would compute`, !formula);
  }
  const bundle = await (await fetch(`${site.url}/health/bundle`)).json();
  check("the bundle has what the pages have", Array.isArray(bundle.audit?.items));
}

/** What changes arrives by itself on the other pages, too. */
export async function liveElsewhere(browser: Browser, site: Site): Promise<void> {
  const context = await browser.newContext(LIGHT);
  const page = await openPage(context, `${site.url}/executors`);
  await page.waitForSelector(".is-live");
  site.views.put({ task: 902, state: "running", job: "elsewhere", age: 0 });
  await page.getByText("ci-3fa9c1d27b-902").waitFor({ timeout: 8000 });
  check("a new executor appears by itself", true);
  site.views.drop(902);
  await page.goto(`${site.url}/backends/pod`);
  await page.waitForSelector(".is-live");
  await page.locator(".step summary").first().click();
  await page.locator(".step[open] input[name=note]").fill("half a note");
  site.views.put({ task: 903, state: "stored", job: "queued", age: 0, position: 9 });
  await page.locator("#waiting").locator("..").getByText("3").waitFor({ timeout: 8000 })
    .catch(() => {});
  await page.getByText("gitea-task-903").waitFor({ timeout: 8000 });
  const note = await page.locator(".step[open] input[name=note]").inputValue();
  check("what somebody is typing stays while the page is refreshed", note === "half a note");
  site.views.drop(903);
  await context.close();
}
