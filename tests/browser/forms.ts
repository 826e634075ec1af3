import type { Page } from "playwright-core";
import type { OperationView } from "../../controller/views/views.ts";
import { eventually } from "../support/eventually.ts";
import type { Place } from "./grounds.ts";

/** How long a busy machine may take for a page. */
export const PATIENCE = { timeout: 60_000 };

/** Opens the form of an action, with a note of its name, and sends it; resolves to the operation's page. */
export async function take(
  page: Page,
  title: string,
  fill?: () => Promise<void>,
): Promise<string> {
  const step = page.locator("details.step", { has: page.locator("summary", { hasText: title }) });
  await step.locator("summary").click();
  await step.locator("input[name=note]").fill(`${title} in a browser`);
  await fill?.();
  await step.locator("button[type=submit]").click();
  await page.waitForURL(/\/operations\//, PATIENCE);
  return page.url();
}

/** What the JSON API answers. */
export async function read<T>(url: string, path: string): Promise<T> {
  const response = await fetch(`${url}/api/v1/${path}`, { signal: AbortSignal.timeout(10_000) });
  const text = await response.text();
  if (!response.ok) throw new Error(`Get "${path}": ${response.status} ${text.slice(0, 200)}`);
  return JSON.parse(text);
}

/** Takes an action by the JSON API; resolves to its operation. */
export async function post(
  url: string,
  path: string,
  body: Readonly<Record<string, unknown>> = {},
): Promise<OperationView> {
  const response = await fetch(`${url}/api/v1/${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ note: "by the API", ...body }),
    signal: AbortSignal.timeout(20_000),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`Post "${path}": ${response.status} ${text.slice(0, 300)}`);
  return JSON.parse(text);
}

/** Begins `act`; resolves to when, in milliseconds since the epoch, its runner at Gitea has the label, or not. */
export async function labelled(
  place: Place,
  { label, there }: { readonly label: string; readonly there: boolean },
  act: () => Promise<unknown>,
): Promise<number> {
  const seen = eventually(
    async () => (await place.labels()).includes(label) === there && Date.now(),
    {
      what: `the label "${label}" to ${there ? "come" : "go"} at Gitea`,
      timeoutMs: 20_000,
      everyMs: 25,
    },
  );
  const [at] = await Promise.all([seen, act()]);
  return at;
}

const ROOT = new URL("../../", import.meta.url).pathname;

/** Runs `deno task ctl` to its end. */
export async function ctl(
  url: string,
  ...args: readonly string[]
): Promise<{ readonly code: number; readonly out: string; readonly err: string }> {
  const output = await new Deno.Command(Deno.execPath(), {
    args: ["task", "--quiet", "ctl", "--url", url, ...args],
    cwd: ROOT,
    stdin: "null",
  }).output();
  const decoder = new TextDecoder();
  return {
    code: output.code,
    out: decoder.decode(output.stdout),
    err: decoder.decode(output.stderr),
  };
}
