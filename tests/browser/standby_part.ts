import type { Browser } from "playwright-core";
import type { LeaderView } from "../../controller/views/views.ts";
import {
  type ControllerProcess,
  createControllerPlace,
  startController,
} from "../support/controller_process.ts";
import { eventually } from "../support/eventually.ts";
import { PATIENCE, read } from "./forms.ts";
import { inspect, LIGHT, PAGES } from "./looks.ts";
import { check, freePort, openPage } from "./support.ts";

/** Pages that show no single job or operation. */
const LISTS = PAGES.filter(([, path]) => !/\/(assignments|operations|executors)\//.test(path));

/**
 * A second replica of the same registration on the same NATS: it shows what the leader shows, refuses
 * actions with the leader's name, and its open page becomes the leader's when that one has gone.
 */
export async function standby(
  { browser, folder }: { readonly browser: Browser; readonly folder: string },
  { env, leader }: {
    readonly env: Readonly<Record<string, string>>;
    readonly leader: ControllerProcess;
  },
): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const home = stack.use(await createControllerPlace());
  const replica = stack.use(
    await startController({
      stateDir: home.stateDir,
      env: { ...env, ADMIN_LISTEN: `127.0.0.1:${freePort()}` },
    }),
  );
  const url = await replica.url();
  await replica.logged("another controller leads, this one waits");
  const { self: holder } = await leader.get<LeaderView>("/api/v1/leader");
  const context = await browser.newContext(LIGHT);
  const page = await openPage(context, `${url}/`, { quiet: true });
  await page.waitForSelector(".is-live", PATIENCE);
  check(
    "standby: the page says that it is one",
    await page.getByText("This replica is a standby").count() > 0,
  );
  await inspect(page, folder, "real-standby");
  for (const [name, path] of LISTS) {
    await page.goto(url + path);
    const forms = await page.locator("form[action^='/actions/']").count();
    const text = await page.locator("main").innerText();
    check(`standby: ${name} is there and offers no action`, forms === 0 && text.length > 80);
  }
  await page.goto(`${url}/backends/pod`);
  check("standby: it names the leader", (await page.locator("main").innerText()).includes(holder));
  const refused = await fetch(`${url}/api/v1/backends/pod/cordon`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: '{"note":"at the standby"}',
  });
  const { detail } = await refused.json() as { readonly detail: string };
  check(
    `standby: an action is refused: ${detail}`,
    refused.status === 503 && detail.includes(holder),
  );
  await eventually(async () => {
    const { items } = await leader.get<{ readonly items: readonly { readonly note: string }[] }>(
      "/api/v1/audit?result=refused",
    );
    return items.some(({ note }) => note === "at the standby");
  }, { what: "the refusal in the leader's audit", timeoutMs: 20_000 });
  check("standby: the leader's audit has the refusal", true);

  await page.goto(`${url}/`);
  await page.waitForSelector(".is-live", PATIENCE);
  const since = performance.now();
  await leader.end("SIGTERM", { ms: 30_000 });
  await eventually(async () => (await read<LeaderView>(url, "leader")).leading, {
    what: "the replica to lead",
    timeoutMs: 30_000,
  });
  await page.getByText("This replica is a standby").waitFor({ state: "detached", ...PATIENCE });
  await page.locator(".is-live").waitFor(PATIENCE);
  const took = ((performance.now() - since) / 1_000).toFixed(1);
  check(`standby: its open page is the leader's ${took} s after the leader was asked to end`, true);
  await context.close();
  await replica.end("SIGTERM", { ms: 30_000 });
}
