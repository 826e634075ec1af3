import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { check, checkAxe, openPage, type Site } from "./support.ts";

/** A page in one form, to be looked at. */
export interface Look {
  readonly name: string;
  readonly path: string;
  readonly context: BrowserContextOptions;
  /** A page that rests runs no script. */
  readonly rests?: boolean;
  /** Opens what is closed at first. */
  readonly open?: string;
}

/** A desk. */
export const WIDE = { viewport: { width: 1280, height: 900 } };
/** A telephone. */
export const PHONE = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2 };
/** A desk by day. */
export const LIGHT = { ...WIDE, colorScheme: "light" } as const;
/** A desk by night. */
export const DARK = { ...WIDE, colorScheme: "dark" } as const;
/** A desk in Chinese. */
export const CHINESE = { ...LIGHT, locale: "zh-CN" } as const;
/** A telephone by day. */
export const SMALL = { ...PHONE, colorScheme: "light" } as const;
const SMALL_DARK_CHINESE = { ...PHONE, colorScheme: "dark", locale: "zh-CN" } as const;
/** 1280 pixels at 200 %. */
const ZOOMED = { ...LIGHT, viewport: { width: 640, height: 450 }, deviceScaleFactor: 2 };

/** Every page: name, path, and a part that is opened in a further look. */
export const PAGES = [
  ["now", "/"],
  ["job", "/assignments/gitea-task-803"],
  ["executors", "/executors"],
  ["backend", "/backends/vm", ".step summary"],
  ["canary", "/canary", ".step summary"],
  ["leader", "/leader", ".step summary"],
  ["history", "/history"],
  ["audit", "/audit"],
  ["health", "/health"],
  ["operation", "/operations/op-1"],
  ["release", "/assignments/gitea-task-803/release"],
  ["cancel", "/assignments/gitea-task-812/cancel"],
  ["stranger", "/executors/ci-3fa9c1d27b-771/release"],
  ["api", "/api/v1/docs", ".operation summary"],
] as const satisfies readonly (readonly [string, string, string?])[];

/** Pages that run no script. */
export const RESTS: ReadonlySet<string> = new Set(["release", "cancel", "stranger", "api"]);

/** All looks: each page in five forms, and further states of some. */
export const LOOKS: readonly Look[] = [
  ...PAGES.flatMap(([name, path, open]): Look[] => {
    const page = { path, ...RESTS.has(name) ? { rests: true } : {} };
    return [
      { ...page, name: `${name}-light`, context: LIGHT },
      { ...page, name: `${name}-dark`, context: DARK },
      { ...page, name: `${name}-zh`, context: CHINESE },
      { ...page, name: `${name}-phone-dark-zh`, context: SMALL_DARK_CHINESE },
      { ...page, name: `${name}-zoomed`, context: ZOOMED },
      ...open === undefined ? [] : [{ ...page, name: `${name}-open`, context: LIGHT, open }],
    ];
  }),
  { name: "now-phone", path: "/", context: SMALL },
  { name: "job-phone", path: "/assignments/gitea-task-799", context: SMALL },
  { name: "backend-phone", path: "/backends/vm", context: SMALL },
  { name: "now-filtered", path: "/?backend=vm&state=stored&repository=acme/web", context: LIGHT },
  { name: "now-waiting", path: "/?list=waiting", context: LIGHT },
  { name: "backend-pod", path: "/backends/pod", context: DARK },
  { name: "job-failed", path: "/assignments/gitea-task-799", context: DARK },
  { name: "job-hostile", path: "/assignments/gitea-task-814", context: LIGHT },
  { name: "job-parked-zh", path: "/assignments/gitea-task-796", context: CHINESE },
  { name: "operation-failed", path: "/operations/op-2", context: LIGHT },
  { name: "audit-none", path: "/audit?actor=nobody", context: LIGHT },
];

/** Opens a look, takes its picture, and lets axe look for what is wrong with it. */
export async function lookAt(
  browser: Browser,
  { site, folder }: { readonly site: Site; readonly folder: string },
  look: Look,
): Promise<void> {
  const context = await browser.newContext(look.context);
  const page = await openPage(context, site.url + look.path);
  if (look.rests !== true) await page.waitForSelector(".is-live");
  if (look.open !== undefined) await page.locator(look.open).first().click();
  await inspect(page, folder, look.name);
  await context.close();
}

/** A picture, axe, and that nothing sticks out or runs that should not. */
export async function inspect(page: Page, folder: string, name: string): Promise<void> {
  await page.screenshot({ path: `${folder}/${name}.png`, fullPage: true });
  await checkAxe(page, name);
  check(`nothing sticks out sideways on ${name}`, await fits(page));
  check(`no string from outside runs on ${name}`, await page.title() !== "owned");
}

async function fits(page: Page): Promise<boolean> {
  return await page.evaluate(() =>
    document.documentElement.scrollWidth <= document.documentElement.clientWidth
  );
}
