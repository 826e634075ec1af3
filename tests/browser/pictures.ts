import type { BrowserContextOptions } from "playwright-core";
import { CHINESE, DARK, LIGHT } from "./looks.ts";

/** A picture of docs/screenshots/. */
export interface Picture {
  readonly name: string;
  readonly path: string;
  readonly context: BrowserContextOptions;
  /** Opened before the picture is taken. */
  readonly open?: string;
}

/** At one pixel of the picture for one of the page, so that files stay small. */
export const SMALL_PHONE = {
  viewport: { width: 390, height: 844 },
  colorScheme: "light",
} as const;

/** In which each page is shown. */
export const FORMS = { "": LIGHT, "-dark": DARK, "-chinese": CHINESE, "-phone": SMALL_PHONE };

/** Every page, with the part that is opened on its picture. */
const PAGES: readonly (readonly [name: string, path: string, open?: string])[] = [
  ["now", "/"],
  ["job", "/assignments/gitea-task-803"],
  ["executors", "/executors"],
  ["backend", "/backends/pod", "form[action$='/drain']"],
  ["canary", "/canary", "form[action$='/label']"],
  ["leader", "/leader", "form[action$='/step-down']"],
  ["history", "/history?backend=vm"],
  ["audit", "/audit"],
  ["health", "/health"],
  ["operation", "/operations/op-1"],
  ["release", "/assignments/gitea-task-803/release"],
];

/** Each page in each form, and further states of single pages, of the sample. */
export const PICTURES: readonly Picture[] = [
  ...PAGES.flatMap(([name, path, open]) =>
    Object.entries(FORMS).map(([form, context]): Picture => ({
      ...{ name: `${name}${form}`, path, context },
      ...open === undefined ? {} : { open },
    }))
  ),
  { name: "api", path: "/api/v1/docs", context: LIGHT, open: "details.operation" },
  { name: "now-filtered", path: "/?backend=vm&state=stored", context: LIGHT },
  { name: "job-waiting", path: "/assignments/gitea-task-815", context: LIGHT },
  { name: "job-failed", path: "/assignments/gitea-task-799", context: DARK },
  { name: "job-parked", path: "/assignments/gitea-task-796", context: LIGHT },
  { name: "backend-cordoned", path: "/backends/vm", context: DARK },
  { name: "operation-failed", path: "/operations/op-2", context: LIGHT },
  { name: "stranger", path: "/executors/ci-3fa9c1d27b-771/release", context: LIGHT },
  { name: "audit-none", path: "/audit?actor=nobody", context: LIGHT },
  { name: "absent", path: "/assignments/gitea-task-1", context: LIGHT },
];

/** Pages as a process shows them that has seen no job yet. */
export const EMPTY: readonly Picture[] = [
  { name: "empty", path: "/", context: LIGHT },
  { name: "executors-empty", path: "/executors?backend=pod", context: LIGHT },
  { name: "backend-empty", path: "/backends/pod", context: LIGHT },
];

/** Pages of a replica that does not lead, NATS being away. */
export const STANDBY: readonly Picture[] = [
  { name: "standby", path: "/", context: LIGHT },
  { name: "backend-standby", path: "/backends/pod", context: LIGHT },
  { name: "leader-standby", path: "/leader", context: LIGHT },
];

/** Pages of a backend that is drained. */
export const DRAINING: readonly Picture[] = [
  { name: "now-draining", path: "/", context: LIGHT },
  { name: "backend-draining", path: "/backends/pod", context: LIGHT },
];

/** Pages as somebody sees them who may only look. */
export const VIEWER: readonly Picture[] = [
  { name: "backend-viewer", path: "/backends/pod", context: LIGHT },
  { name: "release-viewer", path: "/assignments/gitea-task-803/release", context: LIGHT },
];

/** Taken one by one. */
export const OTHERS: readonly string[] = [
  ...Object.keys(FORMS).map((form) => `sign-in${form}`),
  "sign-in-wrong-token",
  "ten-thousand",
  "disconnected",
  "refused",
];

/** Names of all pictures. */
export const NAMES: readonly string[] = [
  ...[PICTURES, EMPTY, STANDBY, DRAINING, VIEWER].flat().map(({ name }) => name),
  ...OTHERS,
];
