import type { Browser, Page } from "playwright-core";
import {
  type ControllerProcess,
  createControllerPlace,
  startController,
} from "../support/controller_process.ts";
import { eventually } from "../support/eventually.ts";
import { type ServedForge, serveForge } from "../support/served_forge.ts";
import { inspect, LIGHT, WIDE } from "./looks.ts";
import { check, freePort, openPage } from "./support.ts";

/** What the parts of this suite share. */
interface Real {
  readonly browser: Browser;
  readonly forge: ServedForge;
  readonly controller: ControllerProcess;
  readonly url: string;
  readonly folder: string;
}

const SLOW = "for i in $(seq 1 240); do echo second $i; sleep 1; done";
const PATIENCE = { timeout: 60_000 };

/**
 * The pages of a real controller, with NATS and executors of its own, at a forge outside of it: jobs
 * that come, wait and run; operators' forms and what they do; a controller that is killed and started
 * again under an open page.
 */
export async function real(browser: Browser, folder: string): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const forge = stack.use(serveForge());
  const place = stack.use(await createControllerPlace());
  const port = freePort();
  const env = { ...forge.env, POD_CAPACITY: "2", ADMIN_LISTEN: `127.0.0.1:${port}` };
  const options = { stateDir: place.stateDir, env };
  let controller = await startController(options);
  stack.defer(() => controller[Symbol.asyncDispose]());
  const url = await controller.url();
  const suite = { browser, forge, controller, url, folder };

  const context = await browser.newContext(LIGHT);
  const page = await openPage(context, `${url}/`, { quiet: true });
  await jobsCome(suite, page);
  await backendActions(suite);
  await givingUp(suite);
  await health(suite);

  await page.goto(`${url}/executors`);
  await page.waitForSelector(".is-live", PATIENCE);
  await controller.end("SIGKILL");
  await page.locator(".is-lost").waitFor(PATIENCE);
  controller = await startController(options);
  await controller.url();
  await page.locator(".is-live").waitFor(PATIENCE);
  check("an open page is live again after the controller was killed and started", true);
  await page.locator(".recovered").first().waitFor(PATIENCE);
  check("what was recovered is marked, with its proof", true);
  await inspect(page, folder, "real-executors-recovered");
  await page.goto(`${url}/audit`);
  const kept = await page.locator("tbody tr").count();
  check(`the audit outlives the controller (${kept} rows)`, kept >= 6);
  await inspect(page, folder, "real-audit");
  await page.goto(`${url}/history`);
  await inspect(page, folder, "real-history");
  await context.close();
  await controller.end("SIGTERM", { ms: 30_000 });
}

async function jobsCome({ forge, folder }: Real, page: Page): Promise<void> {
  await page.waitForSelector(".is-live", PATIENCE);
  for (const name of ["first", "second", "third", "fourth"]) forge.dispatch(name, SLOW);
  const running = page.locator("section[aria-labelledby=running]");
  await running.getByText("first").waitFor(PATIENCE);
  await running.getByText("second").waitFor(PATIENCE);
  const waiting = page.locator("section[aria-labelledby=waiting]");
  await waiting.getByText("third").waitFor(PATIENCE);
  await waiting.getByText("awaiting_slot").first().waitFor(PATIENCE);
  check("jobs of a real controller come by themselves, each that waits with its reason", true);
  await inspect(page, folder, "real-now");
  await running.getByRole("link", { name: "first" }).first().click();
  await page.waitForSelector(".is-live", PATIENCE);
  await page.getByText("runner_claimed").first().waitFor(PATIENCE);
  check("a running job's page has its timeline", await page.locator(".phases tr").count() > 4);
  await inspect(page, folder, "real-job");
  await page.goBack();
}

/** Opens a step of a backend's page, without script, and carries it out. */
async function take(page: Page, title: string, fill?: () => Promise<void>): Promise<string> {
  const step = page.locator("details.step", { has: page.locator("summary", { hasText: title }) });
  await step.locator("summary").click();
  await step.locator("input[name=note]").fill(`${title} in a browser`);
  await fill?.();
  await step.locator("button[type=submit]").click();
  await page.waitForURL(/\/operations\//, PATIENCE);
  return page.url();
}

async function backendActions({ browser, forge, url, folder }: Real): Promise<void> {
  const context = await browser.newContext({ ...LIGHT, javaScriptEnabled: false });
  const page = await openPage(context, `${url}/backends/pod`);
  await take(page, "Cordon");
  check("cordon is done without script", await page.getByText("done").count() > 0);
  await eventually(() => !forge.declared().includes("pod"), {
    what: "the label to go at the forge",
    timeoutMs: 10_000,
  });
  check("the label is gone at the forge", true);
  await page.goto(`${url}/backends/pod`);
  check(
    "the page says who cordoned it and why",
    (await page.locator(".flag").innerText()).includes("Cordon in a browser"),
  );
  await take(page, "Resume");
  await eventually(() => forge.declared().includes("pod"), {
    what: "the label to come back at the forge",
    timeoutMs: 10_000,
  });
  check("the label is back at the forge", true);
  await page.goto(`${url}/backends/pod`);
  await take(page, "Change capacity", async () => {
    await page.locator("details[open] input[name=capacity]").fill("3");
  });
  await page.goto(`${url}/backends/pod`);
  check(
    "the new capacity stands",
    (await page.locator("header.title").innerText()).includes("of 3"),
  );
  await context.close();
  await drained(browser, { url, folder });
}

async function drained(
  browser: Browser,
  { url, folder }: Pick<Real, "url" | "folder">,
): Promise<void> {
  const context = await browser.newContext({ ...WIDE, colorScheme: "dark" });
  const page = await openPage(context, `${url}/backends/pod`);
  await page.waitForSelector(".is-live", PATIENCE);
  const operation = await take(page, "Drain", async () => {
    await page.locator("details[open] input[name=minutes]").fill("30");
  });
  await page.waitForSelector(".is-live", PATIENCE);
  await page.getByText("0 of 4").first().waitFor(PATIENCE);
  check("the drain shows what it waits for", true);
  await page.goto(`${url}/backends/pod`);
  await page.getByText("Draining").first().waitFor(PATIENCE);
  await inspect(page, folder, "real-backend-draining");
  await page.goto(operation);
  await take(page, "Undo the drain");
  await page.goto(operation);
  check("the drain is undone", await page.getByText("undone").count() > 0);
  await page.goto(`${url}/backends/pod`);
  check("nothing is set any more", await page.getByText("takes jobs").count() > 0);
  await context.close();
}

async function givingUp({ browser, forge, controller, url, folder }: Real): Promise<void> {
  const context = await browser.newContext(LIGHT);
  const page = await openPage(context, `${url}/`);
  const giveUp = async (job: string, link: string, tier: string) => {
    await page.goto(`${url}/`);
    await page.locator("a.job-link", { hasText: job }).first().click();
    await page.getByRole("link", { name: link }).click();
    const names = await page.locator("main").innerText();
    check(`${link} names ${job}`, names.includes(job));
    await inspect(page, folder, `real-${tier}`);
    await page.locator(`section.tier.${tier} input[name=note]`).fill(`${tier} in a browser`);
    await page.locator(`section.tier.${tier} button`).click();
    await page.waitForURL(/\/operations\//, PATIENCE);
  };
  await giveUp("fourth", "Cancel…", "graceful");
  await eventually(() => forge.job("fourth")?.result != null, {
    what: "the waiting job to be cancelled at the forge",
    timeoutMs: 30_000,
  });
  check(`a cancelled job is ${forge.job("fourth")?.result} at the forge`, true);
  await giveUp("second", "Release…", "forced");
  await eventually(() => forge.job("second")?.result != null, {
    what: "the running job to be failed at the forge",
    timeoutMs: 30_000,
  });
  await eventually(() => forge.rows("second").some((row) => row.includes("forced in a browser")), {
    what: "the note in the job's log",
    timeoutMs: 30_000,
  });
  check("the note of a forced release is in the job's log", true);
  await page.locator("main").getByText("done", { exact: true }).first().waitFor(PATIENCE);
  check("its operation ends, and the page says so by itself", true);
  const { items } = await controller.get<{ items: { readonly action: string }[] }>("/api/v1/audit");
  check("the audit has it", items.some(({ action }) => action === "release"));
  await context.close();
}

async function health({ browser, url, folder }: Real): Promise<void> {
  const context = await browser.newContext(LIGHT);
  const page = await openPage(context, `${url}/health`);
  await page.getByRole("button", { name: "Run again" }).click();
  await page.waitForURL(/\/health$/, PATIENCE);
  const failed = await page.locator("#tests").locator("../..").locator(".mark.bad").count();
  check(`every self test is well (${failed} failed)`, failed === 0);
  await inspect(page, folder, "real-health");
  await context.close();
}
