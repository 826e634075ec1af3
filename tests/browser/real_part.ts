import type { Browser, Page } from "playwright-core";
import type { AssignmentView } from "../../controller/views/views.ts";
import { breakGate } from "../faults/broken_gate.ts";
import {
  type ControllerPlace,
  type ControllerProcess,
  createControllerPlace,
  startController,
} from "../support/controller_process.ts";
import { eventually } from "../support/eventually.ts";
import { PATIENCE, read, take } from "./forms.ts";
import type { Grounds, Place } from "./grounds.ts";
import { inspect, LIGHT, PAGES, RESTS, WIDE } from "./looks.ts";
import { check, freePort, openPage } from "./support.ts";

/** What the parts of this suite share. */
interface Real {
  readonly browser: Browser;
  readonly grounds: Grounds;
  readonly place: Place;
  /** Runs at Gitea by their job's name. */
  readonly runs: Map<string, number>;
  readonly home: ControllerPlace;
  readonly controller: ControllerProcess;
  readonly url: string;
  readonly folder: string;
}

const NAMES = ["first", "second", "third", "fourth"];

/**
 * The pages of a real controller, with NATS and executors of its own, at a real Gitea: jobs that come,
 * wait and run; operators' forms and what they do; a controller that is killed and started again under an
 * open page.
 */
export async function real(browser: Browser, folder: string, grounds: Grounds): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const place = await grounds.place(
    "real",
    Object.fromEntries([
      ...NAMES.map((name) => [name, { [name]: { label: "pod" } }]),
      ["broken", { broken: { label: "vm", script: "echo repaired" } }],
    ]),
  );
  const home = stack.use(await createControllerPlace());
  const port = freePort();
  const env = { ...place.env, POD_CAPACITY: "2", ADMIN_LISTEN: `127.0.0.1:${port}` };
  const options = { stateDir: home.stateDir, env };
  let controller = await startController(options);
  stack.defer(() => controller[Symbol.asyncDispose]());
  const url = await controller.url();
  const suite = {
    ...{ browser, grounds, place, home, controller, url, folder },
    runs: new Map<string, number>(),
  };

  const context = await browser.newContext(LIGHT);
  const page = await openPage(context, `${url}/`, { quiet: true });
  await jobsCome(suite, page);
  await backendActions(suite);
  const repair = await breakStarts(suite);
  await drained(suite, true);
  await drained(suite, false);
  await givingUp(suite);
  await health(suite);
  await everyPage(suite);
  await retried(suite, repair);

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

async function jobsCome({ place, runs, folder }: Real, page: Page): Promise<void> {
  await page.waitForSelector(".is-live", PATIENCE);
  const running = page.locator("section[aria-labelledby=running]");
  // Gitea hands out in the order of its own.
  for (const name of NAMES) {
    runs.set(name, await place.dispatch(name));
    if (name === "second") await running.getByText("second").first().waitFor(PATIENCE);
  }
  await running.getByText("first").first().waitFor(PATIENCE);
  const waiting = page.locator("section[aria-labelledby=waiting]");
  await waiting.getByText("third").waitFor(PATIENCE);
  await waiting.getByText("fourth").waitFor(PATIENCE);
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

async function backendActions({ browser, place, url }: Real): Promise<void> {
  const labelled = (there: boolean) =>
    eventually(async () => (await place.labels()).includes("pod") === there, {
      what: `the label to ${there ? "come back" : "go"} at Gitea`,
      timeoutMs: 10_000,
    });
  for (const javaScriptEnabled of [false, true]) {
    const how = javaScriptEnabled ? "with script" : "without script";
    const context = await browser.newContext({ ...LIGHT, javaScriptEnabled });
    const page = await openPage(context, `${url}/backends/pod`, { quiet: true });
    await take(page, "Cordon");
    check(`cordon is done ${how}`, await page.getByText("done").count() > 0);
    await labelled(false);
    check(`cordon ${how}: the label is gone at Gitea`, true);
    await page.goto(`${url}/backends/pod`);
    check(
      `the page says who cordoned it and why, ${how}`,
      (await page.locator(".flag").first().innerText()).includes("Cordon in a browser"),
    );
    await take(page, "Resume");
    await labelled(true);
    check(`resume ${how}: the label is back at Gitea`, true);
    await page.goto(`${url}/backends/pod`);
    const wanted = javaScriptEnabled ? 3 : 4;
    await take(page, "Change capacity", async () => {
      await page.locator("details[open] input[name=capacity]").fill(String(wanted));
    });
    await page.goto(`${url}/backends/pod`);
    check(
      `the new capacity stands ${how}`,
      (await page.locator("header.title").innerText()).includes(`of ${wanted}`),
    );
    if (javaScriptEnabled) {
      await take(page, "Back to the configured 2");
      await page.goto(`${url}/backends/pod`);
      check(
        "the configured capacity stands again",
        (await page.locator("header.title").innerText()).includes("of 2"),
      );
    }
    await context.close();
  }
}

async function drained({ browser, url, folder }: Real, javaScriptEnabled: boolean): Promise<void> {
  const how = javaScriptEnabled ? "with script" : "without script";
  const context = await browser.newContext({ ...WIDE, colorScheme: "dark", javaScriptEnabled });
  const page = await openPage(context, `${url}/backends/pod`);
  if (javaScriptEnabled) await page.waitForSelector(".is-live", PATIENCE);
  const operation = await take(page, "Drain", async () => {
    await page.locator("details[open] input[name=minutes]").fill("30");
  });
  await page.getByText("0 of 4").first().waitFor(PATIENCE);
  check(`the drain shows what it waits for ${how}`, true);
  await page.goto(`${url}/backends/pod`);
  await page.getByText("Draining").first().waitFor(PATIENCE);
  if (javaScriptEnabled) await inspect(page, folder, "real-backend-draining-dark");
  await page.goto(operation);
  await take(page, "Undo the drain");
  await page.goto(operation);
  check(`the drain is undone ${how}`, await page.getByText("undone").count() > 0);
  await page.goto(`${url}/backends/pod`);
  check(`nothing is set any more ${how}`, await page.getByText("takes jobs").count() > 0);
  await context.close();
}

async function givingUp({ browser, grounds, place, runs, controller, url, folder }: Real) {
  const context = await browser.newContext(LIGHT);
  const plain = await browser.newContext({ ...LIGHT, javaScriptEnabled: false });
  const scripted = await openPage(context, `${url}/`);
  const giveUp = async (page: Page, job: string, link: string, tier: string) => {
    await page.goto(`${url}/`);
    await page.locator("a.job-link", { hasText: job }).first().click();
    await page.getByRole("link", { name: link }).click();
    const names = await page.locator("main").innerText();
    check(`${link} names ${job}`, names.includes(job));
    await page.screenshot({ path: `${folder}/real-${tier}.png`, fullPage: true });
    await page.locator(`section.tier.${tier} input[name=note]`).fill(`${tier} in a browser`);
    await page.locator(`section.tier.${tier} button`).click();
    await page.waitForURL(/\/operations\//, PATIENCE);
  };
  const ended = async (job: string, result: string) =>
    await eventually(async () => (await place.jobs(runs.get(job) ?? 0))[0]?.status === result, {
      what: `"${job}" to be ${result} at Gitea`,
      timeoutMs: 30_000,
    });
  await giveUp(await openPage(plain, `${url}/`), "fourth", "Cancel…", "graceful");
  await ended("fourth", "cancelled");
  check("a job that is cancelled without script is cancelled at Gitea", true);
  await giveUp(scripted, "second", "Release…", "forced");
  await ended("second", "failure");
  const [job] = await place.jobs(runs.get("second") ?? 0);
  await eventually(
    async () =>
      (await grounds.gitea.log(place.repository, job?.id ?? 0)).includes("forced in a browser"),
    { what: "the note in the job's log", timeoutMs: 30_000 },
  );
  check("the note of a forced release is in the job's log at Gitea", true);
  await scripted.locator("main").getByText("done", { exact: true }).first().waitFor(PATIENCE);
  check("its operation ends, and the page says so by itself", true);
  const { items } = await controller.get<{ items: { readonly action: string }[] }>("/api/v1/audit");
  check("the audit has it", items.some(({ action }) => action === "release"));
  await context.close();
  await plain.close();
}

/** From now on executors end at once; one job is waiting for that to change. */
async function breakStarts({ home, place, runs, url }: Real): Promise<AsyncDisposable> {
  await eventually(async () => {
    const { total } = await read<{ readonly total: number }>(
      url,
      "assignments?backend=pod&state=running",
    );
    return total === NAMES.length;
  }, { what: "all jobs to run", timeoutMs: 60_000, everyMs: 100 });
  const broken = await breakGate(home.runtimeDir);
  runs.set("broken", await place.dispatch("broken"));
  return broken;
}

/** A job whose executors have failed is parked, says why, and is tried at once when an operator says so. */
async function retried(
  { browser, place, runs, url, folder }: Real,
  repair: AsyncDisposable,
): Promise<void> {
  const parked = await eventually(async () => {
    const { items } = await read<{ items: readonly AssignmentView[] }>(
      url,
      "assignments?backend=vm&state=parked",
    );
    return items[0];
  }, { what: "the job whose executors fail to be parked", timeoutMs: 120_000, everyMs: 200 });
  await repair[Symbol.asyncDispose]();
  const context = await browser.newContext(LIGHT);
  const page = await openPage(context, `${url}/assignments/${parked.id}`);
  await page.waitForSelector(".is-live", PATIENCE);
  check(
    `a parked job says why: ${parked.reason?.code}`,
    (await page.locator("main").innerText()).includes(parked.reason?.code ?? "?"),
  );
  await inspect(page, folder, "real-job-parked");
  await page.getByRole("button", { name: "Retry now" }).click();
  await page.waitForURL(/\/operations\//, PATIENCE);
  await eventually(
    async () => (await place.jobs(runs.get("broken") ?? 0))[0]?.status === "success",
    {
      what: "the job to succeed after its retry",
      timeoutMs: 60_000,
    },
  );
  check("retry: it is tried at once, and succeeds", true);
  await context.close();
}

/** Each page with and without script, live where it is to be. */
async function everyPage({ browser, url, folder }: Real): Promise<void> {
  const { items: [job] } = await read<{ items: readonly AssignmentView[] }>(
    url,
    "assignments?state=running",
  );
  const { items: [operation] } = await read<{ items: readonly { readonly id: string }[] }>(
    url,
    "operations",
  );
  const own = (path: string) =>
    path.replace(/gitea-task-\d+/, job?.id ?? "").replace("op-1", operation?.id ?? "");
  const pages = PAGES.filter(([name]) => name !== "stranger");
  for (const javaScriptEnabled of [true, false]) {
    const how = javaScriptEnabled ? "with script" : "without script";
    const context = await browser.newContext({ ...LIGHT, javaScriptEnabled });
    const page = await openPage(context, `${url}/`);
    for (const [name, path] of pages) {
      const answer = await page.goto(url + own(path));
      if (javaScriptEnabled && !RESTS.has(name)) await page.waitForSelector(".is-live", PATIENCE);
      const text = await page.locator("main").innerText();
      check(
        `real ${name} is complete ${how}`,
        answer?.status() === 200 && text.length > 80 && !/undefined|NaN|\[object/.test(text),
      );
      if (javaScriptEnabled) await inspect(page, folder, `real-page-${name}`);
    }
    await context.close();
  }
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
