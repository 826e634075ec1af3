import type { Browser, Page } from "playwright-core";
import { inspect, LIGHT } from "./looks.ts";
import { check, openPage, type Site } from "./support.ts";

/** Every form of the pages, with and without script. */
export async function actions(browser: Browser, site: Site, folder: string): Promise<void> {
  for (const javaScriptEnabled of [true, false]) {
    const context = await browser.newContext({ ...LIGHT, javaScriptEnabled });
    const page = await openPage(context, `${site.url}/backends/vm`);
    const how = javaScriptEnabled ? "with script" : "without script";
    await steps(page, site, how);
    await release(page, site, how);
    await context.close();
  }
  const context = await browser.newContext(LIGHT);
  // The browser tells of an answer of 412 on its console.
  const page = await openPage(context, `${site.url}/`, { quiet: true });
  await refused(page, site, folder);
  await context.close();
}

const last = (site: Site) => site.actions.asked.at(-1);

async function steps(page: Page, site: Site, how: string): Promise<void> {
  const step = async (path: string, title: string | RegExp, fill: () => Promise<void>) => {
    await page.goto(site.url + path);
    const before = site.actions.asked.length;
    const details = page.locator("details.step", {
      has: page.locator("summary", { hasText: title }),
    });
    check(`${title}: its form is closed first, ${how}`, !await details.locator("form").isVisible());
    await details.locator("summary").click();
    check(`${title}: opening does nothing, ${how}`, site.actions.asked.length === before);
    await fill();
    await details.locator("button[type=submit]").click();
    await page.waitForURL(/\/operations\/op-1$/);
    return last(site)?.action;
  };
  const note = () => page.locator("details[open] input[name=note]").fill("why & <b>how</b>");
  const resume = await step("/backends/vm", "Resume", note);
  check(`resume is asked for ${how}`, resume?.kind === "resume");
  check(`the note goes with it ${how}`, last(site)?.request.note === "why & <b>how</b>");
  check(`and the tag of what was seen ${how}`, last(site)?.request.ifMatch === '"tag-vm"');
  check(`and a key ${how}`, /^[\w-]{20,}$/.test(last(site)?.request.key ?? ""));
  const cordon = await step("/backends/pod", "Cordon", note);
  check(`cordon is asked for ${how}`, cordon?.kind === "cordon" && cordon.backend === "pod");
  const drain = await step("/backends/pod", "Drain", async () => {
    const hold = page.locator("details[open] input[name=hold]");
    check(`hold is not chosen beforehand ${how}`, !await hold.isChecked());
    await hold.check();
    await page.locator("details[open] input[name=minutes]").fill("30");
  });
  check(
    `drain is asked for with its deadline ${how}`,
    drain?.kind === "drain" && drain.hold && drain.deadline?.kind === "within" &&
      drain.deadline.ms === 1_800_000,
  );
  const capacity = await step(
    "/backends/vm",
    "Change capacity",
    () => page.locator("details[open] input[name=capacity]").fill("2"),
  );
  check(`capacity is asked for ${how}`, capacity?.kind === "capacity" && capacity.value === 2);
  const back = await step("/backends/vm", "Back to the configured 4", note);
  check(`capacity goes back ${how}`, back?.kind === "capacity" && back.value === null);
  const label = await step("/canary", "Promote to vm", note);
  check(`promotion is asked for ${how}`, label?.kind === "label" && label.value === "vm");
  const down = await step("/leader", "Step down", note);
  check(`stepping down is asked for ${how}`, down?.kind === "step-down");
  const undo = await step("/operations/op-1", "Undo the drain", note);
  check(`undo is asked for ${how}`, undo?.kind === "undo" && undo.operation === "op-1");
}

/** What has changed since somebody looked is not acted on, and the page says what it is now. */
async function refused(page: Page, site: Site, folder: string): Promise<void> {
  await page.goto(`${site.url}/assignments/gitea-task-796`);
  site.actions.answer({
    kind: "stale",
    detail: "Look again: it has changed since you looked",
    current: { id: "gitea-task-796", state: "running", repository: "<b>acme</b>/billing" },
  });
  await page.getByRole("button", { name: "Retry now" }).click();
  await page.getByText("Nothing was done").waitFor();
  await inspect(page, folder, "refused");
  const text = await page.locator("main").innerText();
  check("a refusal says what stands there now", text.includes("<b>acme</b>/billing"));
  await page.getByRole("link", { name: "Look again" }).click();
  check("and leads back", page.url().endsWith("/assignments/gitea-task-796"));
}

async function release(page: Page, site: Site, how: string): Promise<void> {
  await page.goto(`${site.url}/assignments/gitea-task-803`);
  const before = site.actions.asked.length;
  await page.getByRole("link", { name: "Release…" }).click();
  const text = await page.locator("main").innerText();
  check(`the page names the job that is affected ${how}`, text.includes("gitea-task-803"));
  check(
    `no way is chosen beforehand ${how}`,
    await page.locator("main input[type=radio], main input:checked, main select").count() === 0,
  );
  const forget = page.locator("section.tier.forget");
  await forget.locator("input[name=confirm]").fill("gitea-task-80");
  await forget.locator("button").click();
  check(`a wrong name forgets nothing ${how}`, site.actions.asked.length === before);
  await forget.locator("input[name=confirm]").fill("gitea-task-803");
  await forget.locator("button").click();
  await page.waitForURL(/\/operations\//);
  const asked = last(site)?.action;
  check(
    `forget is asked for with the name typed ${how}`,
    asked?.kind === "release" && asked.tier === "forget",
  );
  await page.goto(`${site.url}/assignments/gitea-task-803/release`);
  await page.locator("section.tier.forced input[name=note]").fill("node is gone");
  await page.locator("section.tier.forced button").click();
  await page.waitForURL(/\/operations\//);
  const forced = last(site);
  check(
    `forced is asked for with its note ${how}`,
    forced?.action.kind === "release" && forced.action.tier === "forced" &&
      forced.request.note === "node is gone",
  );
  await page.goto(`${site.url}/assignments/gitea-task-812`);
  await page.getByRole("link", { name: "Cancel…" }).click();
  await page.locator("section.tier.graceful button").click();
  await page.waitForURL(/\/operations\//);
  check(`cancel is asked for ${how}`, last(site)?.action.kind === "cancel");
  await page.goto(`${site.url}/executors`);
  await page.locator("#strangers").locator("../..").getByRole("link", { name: "Release…" }).click();
  await page.locator("section.tier.forget input[name=confirm]").fill("ci-3fa9c1d27b-771");
  await page.locator("section.tier.forget button").click();
  await page.waitForURL(/\/operations\//);
  const stranger = last(site)?.action;
  check(
    `an executor without a job is forgotten by its name ${how}`,
    stranger?.kind === "release-executor" && stranger.tier === "forget",
  );
  await page.goto(`${site.url}/assignments/gitea-task-796`);
  await page.getByRole("button", { name: "Retry now" }).click();
  await page.waitForURL(/\/operations\//);
  check(`retry is asked for ${how}`, last(site)?.action.kind === "retry");
}
