import type { Browser, Page } from "playwright-core";
import type { AuditView } from "../../controller/views/views.ts";
import type { CanaryView } from "../../controller/views/operating_views.ts";
import { createControllerPlace, startController } from "../support/controller_process.ts";
import { eventually } from "../support/eventually.ts";
import { labelled, PATIENCE, post, read, take } from "./forms.ts";
import type { Grounds, Place } from "./grounds.ts";
import { inspect, LIGHT } from "./looks.ts";
import { check, freePort, openPage } from "./support.ts";

/**
 * A canary: with `vm-dev` declared a job for `vm` stays at Gitea while one for `vm-dev` runs; the page
 * promotes it; in the end the configuration changes, and wins.
 */
export async function canary(browser: Browser, folder: string, grounds: Grounds): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const place = await grounds.place("canary", {
    production: { production: { label: "vm", script: "echo production" } },
    canary: { canary: { label: "vm-dev" } },
    failing: { failing: { label: "vm-dev", script: "exit 3" } },
  });
  const home = stack.use(await createControllerPlace());
  const url = `http://127.0.0.1:${freePort()}`;
  const start = async (label: string) => {
    const controller = await startController({
      stateDir: home.stateDir,
      env: {
        ...place.env,
        ADMIN_LISTEN: new URL(url).host,
        VM_CAPACITY: "2",
        VM_RUNNER_LABEL: label,
      },
    });
    stack.use(controller);
    await controller.url();
    return controller;
  };
  const controller = await start("vm-dev");
  const context = await browser.newContext(LIGHT);
  const page = await openPage(context, `${url}/canary`, { quiet: true });
  await page.waitForSelector(".is-live", PATIENCE);

  await pendingThenPromoted({ page, place, url, folder });
  await back(browser, { place, url });

  await post(url, "backends/vm/label", { label: "vm" });
  await controller.end("SIGTERM", { ms: 30_000 });
  const second = await start("vm");
  const last = await eventually(async () => {
    const { items } = await read<{ items: readonly AuditView[] }>(url, "audit?action=label");
    return items.find(({ actor }) => actor === "configuration");
  }, { what: "the changed configuration in the audit", timeoutMs: 60_000, everyMs: 200 });
  await page.locator(".is-live").waitFor(PATIENCE);
  await page.goto(`${url}/audit?action=label`);
  check(
    `canary: a changed VM_RUNNER_LABEL is audited: ${last.actor}: ${last.note}`,
    last.note.startsWith("VM_RUNNER_LABEL was") &&
      (await page.locator("tbody tr").first().innerText()).includes("configuration"),
  );
  await second.end("SIGTERM", { ms: 30_000 });
  // What was set by hand is gone: it would still say vm.
  await labelled(place, { label: "vm-dev", there: true }, () => start("vm-dev"));
  const { override } = await canaryOf(url);
  check(
    "canary: it has won over what was set by hand",
    override === null && !(await place.labels()).includes("vm"),
  );
  await context.close();
}

async function canaryOf(url: string): Promise<CanaryView> {
  const answer = await fetch(`${url}/canary`, { headers: { accept: "application/json" } });
  return (await answer.json() as { readonly canary: CanaryView }).canary;
}

async function pendingThenPromoted(
  { page, place, url, folder }: {
    readonly page: Page;
    readonly place: Place;
    readonly url: string;
    readonly folder: string;
  },
): Promise<void> {
  const statusOf = async (run: number) => (await place.jobs(run))[0]?.status;
  const ended = (run: number, result: string) =>
    eventually(async () => await statusOf(run) === result, {
      what: `run ${run} to be ${result}`,
      timeoutMs: 60_000,
      everyMs: 50,
    });
  // The one for `vm` is older: whoever took it would take it first.
  const production = await place.dispatch("production");
  const failing = await place.dispatch("failing");
  const dev = await place.dispatch("canary");
  await ended(dev, "running");
  await ended(failing, "failure");
  check(
    "canary: a vm job stays pending at Gitea while a vm-dev job runs",
    await statusOf(production) === "waiting" && await statusOf(dev) === "running",
  );
  check(
    "canary: the page says which label stands",
    (await page.locator("main header").first().innerText()).includes("vm-dev"),
  );
  await inspect(page, folder, "real-canary-pending");
  const since = Date.now();
  const at = await labelled(place, { label: "vm", there: true }, () => take(page, "Promote to vm"));
  check(
    `canary: promoted in the page, vm is declared after ${at - since} ms, and vm-dev no more`,
    !(await place.labels()).includes("vm-dev"),
  );
  await ended(production, "success");
  check(`canary: the vm job starts, and succeeds ${Date.now() - at} ms after that`, true);
  await place.open("canary");
  await ended(dev, "success");
  await page.goto(`${url}/canary`);
  await page.waitForSelector(".is-live", PATIENCE);
  const cells = async (name: string) =>
    await page.locator("table.compare tr", {
      has: page.locator("th[scope=row]", { hasText: new RegExp(`^${name.replace("/", "\\/")}$`) }),
    }).locator("td").allInnerTexts();
  await eventually(async () => (await cells("Success")).join() === "1,1", {
    what: "the figures of both labels",
    timeoutMs: 20_000,
  }).catch(() => {});
  const heads = await page.locator("table.compare thead th").allInnerTexts();
  const figures = [await cells("Success"), await cells("Failure"), await cells("Start p50 / p95")];
  check(
    `canary: figures of ${heads.length} labels beside each other: ${JSON.stringify(figures)}`,
    heads.length === 2 && figures[0]?.join() === "1,1" &&
      [...figures[1] ?? []].sort().join() === "0,1" &&
      (figures[2]?.every((text) => /\d/.test(text)) ?? false),
  );
  await inspect(page, folder, "real-canary");
}

async function back(
  browser: Browser,
  { place, url }: { readonly place: Place; readonly url: string },
): Promise<void> {
  const context = await browser.newContext({ ...LIGHT, javaScriptEnabled: false });
  const page = await openPage(context, `${url}/canary`);
  await labelled(place, { label: "vm-dev", there: true }, () => take(page, "Back to vm-dev"));
  check("canary: back to vm-dev without script", !(await place.labels()).includes("vm"));
  await context.close();
}
