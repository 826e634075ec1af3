import axe from "axe-core";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import type { Views } from "../../controller/views/views.ts";
import { systemClock } from "../../lib/clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import type { Access } from "../../web/access/access.ts";
import { LOOPBACK_HOSTS } from "../../web/guard.ts";
import { listenWeb } from "../../web/listen.ts";
import { createWeb } from "../../web/server.ts";
import { createFakeActions, type FakeActions } from "../fakes/actions.ts";
import { createFakeViews, type FakeViews, type FakeViewsOptions } from "../fakes/views.ts";
import { NETWORK_CHANGED, steadyPage } from "./steady_page.ts";

/** A dashboard on a port of its own, showing fake data. */
export interface Site extends AsyncDisposable {
  readonly url: string;
  readonly views: FakeViews;
  readonly actions: FakeActions;
}

/** Starts a dashboard; `port` 0 takes a free one. `wrap` may change what it shows, `access` asks who looks. */
export function startSite(
  options: FakeViewsOptions & {
    readonly wrap?: (views: FakeViews) => Views;
    readonly access?: Access;
  } = {},
  port = 0,
): Site {
  const views = createFakeViews({ clock: systemClock }, options);
  const actions = createFakeActions({ now: systemClock.now, find: views.find });
  const web = createWeb({
    views: options.wrap?.(views) ?? views,
    actions,
    ...options.access === undefined ? {} : { access: options.access },
    clock: systemClock,
    logger: {
      ...silentLogger,
      error: (message, fields) => fail(`${message} ${JSON.stringify(fields)}`),
    },
    version: "0.1.0",
    hosts: LOOPBACK_HOSTS,
    metricsText: () => Promise.resolve("# no metrics\n"),
    readiness: () => ({ ready: true, role: "leader", checks: [] }),
  });
  const listener = listenWeb(web, { hostname: "127.0.0.1", port });
  return {
    url: `http://127.0.0.1:${listener.address.port}`,
    views,
    actions,
    async [Symbol.asyncDispose]() {
      await web[Symbol.asyncDispose]();
      await listener[Symbol.asyncDispose]();
    },
  };
}

/** A port that is free now, for a server that keeps it from start to start. */
export function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}

/** Chromium of this machine. */
export function startBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: Deno.env.get("CHROMIUM") ?? "/usr/bin/chromium",
    args: [
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--hide-scrollbars",
    ],
  });
}

/** Opens a page that reports every console error and refused script as a failure. */
export async function openPage(
  context: BrowserContext,
  url: string,
  options: { readonly quiet?: boolean } = {},
): Promise<Page> {
  const page = steadyPage(await context.newPage());
  if (options.quiet !== true) {
    page.on("console", (message) => {
      const text = message.text();
      const isOurs = !text.includes(NETWORK_CHANGED);
      if (isOurs && ["error", "warning"].includes(message.type())) fail(`console: ${text}`);
    });
    page.on("pageerror", (error) => fail(`page: ${error.message}`));
  }
  // The event stream never ends, so "networkidle" never comes.
  await page.goto(url, { waitUntil: "load" });
  return page;
}

/** Says what axe finds; nothing is what it should find. */
export async function checkAxe(page: Page, name: string): Promise<void> {
  await page.evaluate(axe.source);
  const found = await page.evaluate(async () => {
    const axe: { run(options: unknown): Promise<AxeResult> } = Reflect.get(globalThis, "axe");
    const { violations } = await axe.run({
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    });
    return violations.map(({ id, nodes }) =>
      `${id}: ${nodes.slice(0, 3).map((n) => n.html).join(" | ")}`
    );
  });
  for (const violation of found) fail(`axe on ${name}: ${violation}`);
  if (found.length === 0) pass(`axe finds nothing on ${name}`);
}

interface AxeResult {
  readonly violations: readonly {
    readonly id: string;
    readonly nodes: readonly { readonly html: string }[];
  }[];
}

let passed = 0;
let failed = 0;

/** Prints a line. */
export function say(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}

/** Counts and prints a success. */
export function pass(what: string): void {
  passed++;
  say(`ok      ${what}`);
}

/** Counts and prints a failure. */
export function fail(what: string): void {
  failed++;
  say(`FAILED  ${what}`);
}

/** Counts `what` as passed or failed. */
export function check(what: string, holds: boolean): void {
  if (holds) pass(what);
  else fail(what);
}

/** Prints the sum and returns the exit code. */
export function finish(): number {
  say(`${passed} passed, ${failed} failed, 0 skipped`);
  return failed === 0 ? 0 : 1;
}
