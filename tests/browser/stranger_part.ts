import type { Browser } from "playwright-core";
import { createLifecycle } from "../../clients/opensandbox/lifecycle.ts";
import {
  assignmentIdOf,
  executorName,
  instanceOf,
  parseTaskId,
} from "../../controller/model/ids.ts";
import { metadataKeys } from "../../controller/model/metadata.ts";
import type { AuditView, BackendView, ExecutorView, Page } from "../../controller/views/views.ts";
import { systemClock } from "../../lib/clock.ts";
import { Secret } from "../../lib/secret.ts";
import { eventually } from "../support/eventually.ts";
import { VM_PREFIX } from "../support/vm_backend_setup.ts";
import type { Stage } from "../vm/stage.ts";
import { PATIENCE, read } from "./forms.ts";
import { inspect, LIGHT } from "./looks.ts";
import { check, openPage } from "./support.ts";

/** Far above what Gitea has given out. */
const FIRST_TASK = 6_000_000;
const GONE_MS = 60_000;

/**
 * Executors that nobody can account for, on a real opensandbox-server: sandboxes with our labels whose
 * annotations are not there. Each keeps a slot until it is given up on its page: one is deleted, with
 * script, and one forgotten, without.
 */
export async function strangers(
  { browser, folder, stage, url }: {
    readonly browser: Browser;
    readonly folder: string;
    readonly stage: Stage;
    readonly url: string;
  },
): Promise<void> {
  const { apiKey, url: server } = stage.peers.opensandbox;
  using api = createLifecycle({ url: server, apiKey: new Secret(apiKey), clock: systemClock });
  const call = { signal: AbortSignal.timeout(180_000) };
  const uuid = await Deno.readTextFile(`${stage.base.registration}/GITEA_RUNNER_UUID`);
  const instance = await instanceOf(uuid.trim(), "gitea-actions");
  for (const [tier, javaScriptEnabled] of [["forced", true], ["forget", false]] as const) {
    const task = parseTaskId(String(FIRST_TASK + Number(javaScriptEnabled)));
    if (task === undefined) throw new RangeError("Make a task");
    const name = executorName(instance, assignmentIdOf(task));
    const { labels } = metadataKeys(VM_PREFIX);
    const { id } = await api.create({
      pool: "ci-vm",
      entrypoint: ["/bin/true"],
      environment: {},
      metadata: {
        [labels.runner]: "true",
        [labels.backend]: "vm",
        [labels.instance]: instance,
        [labels.taskId]: task,
        [labels.assignmentId]: assignmentIdOf(task),
      },
      timeoutMs: 3_600_000,
    }, call);
    const shown = await eventually(async () => {
      const { items } = await read<Page<ExecutorView>>(url, "executors?backend=vm&limit=100");
      return items.find((each) => each.uid === id);
    }, { what: "the executor to be shown", timeoutMs: GONE_MS, everyMs: 200 });
    const unknown = async () => (await read<BackendView>(url, "backends/vm")).unknown;
    check(
      `stranger: it is ${shown.ownership}, and keeps a slot: ${shown.why}`,
      shown.name === name && shown.ownership === "unknown" && await unknown() === 1,
    );
    const context = await browser.newContext({ ...LIGHT, javaScriptEnabled });
    const page = await openPage(context, `${url}/executors`, { quiet: !javaScriptEnabled });
    await page.locator("#strangers").locator("../..").getByRole("link", { name: "Release…" })
      .click();
    await page.waitForURL(/\/executors\/.*\/release/, PATIENCE);
    // Its looks are judged by a script of its own.
    if (javaScriptEnabled) await inspect(page, folder, "real-stranger");
    const form = page.locator(`section.tier.${tier}`);
    await form.locator("input[name=note]").fill(`stranger ${tier}`);
    if (tier === "forget") await form.locator("input[name=confirm]").fill(name);
    await form.locator("button").click();
    await page.waitForURL(/\/operations\//, PATIENCE);
    await context.close();
    await eventually(async () => await unknown() === 0 && await api.get(id, call) === undefined, {
      what: "its sandbox and its slot to be free",
      timeoutMs: GONE_MS,
      everyMs: 200,
    });
    const { items } = await read<Page<AuditView>>(url, "audit?limit=100");
    const rows = items.filter(({ target }) => target === name);
    check(
      `stranger ${tier}: deleted, its slot is free, and the audit has it: ${rows[0]?.action}`,
      rows.length === 1 && rows[0]?.result === "done" && rows[0]?.note === `stranger ${tier}`,
    );
  }
}
