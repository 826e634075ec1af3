/** Makes docs/images/now.png from sample data: `deno run -A tests/browser/picture.ts`. */
import { SKETCHES } from "../fakes/sample_jobs.ts";
import { openPage, say, startBrowser, startSite } from "./support.ts";

const target = new URL("../../docs/images/now.png", import.meta.url).pathname;
const jobs = SKETCHES.filter(({ task }) => task !== 814);

await using site = startSite({ jobs });
const { sources, backends } = site.views.status();
site.views.override({
  sources: {
    ...sources,
    kubernetes: { ...sources.kubernetes, lastError: "watch pods: 410 Gone, listing again" },
  },
  backends: backends.map((backend) =>
    backend.cordoned === null
      ? backend
      : { ...backend, cordoned: { ...backend.cordoned, note: "kernel update" } }
  ),
});
await using browser = await startBrowser();
const context = await browser.newContext({
  viewport: { width: 1280, height: 1020 },
  colorScheme: "light",
});
const page = await openPage(context, `${site.url}/`);
await page.waitForSelector(".is-live");
await page.screenshot({ path: target });
say(`${target}: ${(await Deno.stat(target)).size} bytes`);
