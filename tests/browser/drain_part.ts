import type { Browser, Page } from "playwright-core";
import type {
  AssignmentView,
  BackendView,
  OperationView,
  StatusView,
} from "../../controller/views/views.ts";
import {
  type ControllerProcess,
  createControllerPlace,
  startController,
} from "../support/controller_process.ts";
import { eventually } from "../support/eventually.ts";
import { natsEnvironment, startNats, type TestNats } from "../support/nats.ts";
import { ctl, labelled, PATIENCE, post, read, take } from "./forms.ts";
import type { Grounds, Jobs, Place } from "./grounds.ts";
import { inspect, LIGHT } from "./looks.ts";
import { standby } from "./standby_part.ts";
import { steadyPage } from "./steady_page.ts";
import { check, freePort, openPage } from "./support.ts";

/** What the steps of this part share. */
interface Suite {
  readonly browser: Browser;
  readonly folder: string;
  readonly place: Place;
  readonly nats: TestNats;
  readonly url: string;
  /** Starts the controller again, on the same port and the same state. */
  start(): Promise<ControllerProcess>;
}

const POD = "backends/pod";
const SLOTS = 10;
/** The label is gone, and back, within this of the operation's start. */
const LABEL_MS = 2_000;
/** A job that waited at Gitea is fetched within this of the undo. */
const FETCH_MS = 3_000;

const jobs = (letter: string, count: number): Jobs =>
  Object.fromEntries(keys(letter, 1, count).map((key) => [key, { label: "pod" }]));

function keys(letter: string, from: number, to: number): string[] {
  return Array.from({ length: to - from + 1 }, (_, index) => `${letter}${from + index}`);
}

/**
 * A backend with ten running and five stored jobs is drained three times, by the page, by the API and by
 * `ctl`: at half time each is undone. The controller is killed in the middle of the first one and started
 * while NATS is away. In the end a second replica looks on, and takes over.
 */
export async function drain(browser: Browser, folder: string, grounds: Grounds): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const place = await grounds.place("drained", {
    first: jobs("a", 15),
    second: jobs("b", 7),
    third: jobs("c", 4),
    ...Object.fromEntries(["x", "y", "z"].map((letter) => [`late-${letter}`, jobs(letter, 1)])),
  });
  const nats = stack.use(await startNats());
  const home = stack.use(await createControllerPlace());
  const port = freePort();
  const env = {
    ...place.env,
    ...natsEnvironment(nats),
    PROFILE: "embedded",
    LOG_FORMAT: "json",
    CAPABILITY_KEY: "drained-backend-".repeat(3),
    POD_CAPACITY: String(SLOTS),
    ADMIN_LISTEN: `127.0.0.1:${port}`,
  };
  const start = async () => {
    const controller = await startController({ stateDir: home.stateDir, env });
    stack.use(controller);
    await controller.url();
    return controller;
  };
  const suite = { browser, folder, place, nats, url: `http://127.0.0.1:${port}`, start };
  const first = await start();
  const second = await byPage(suite, first);
  await byApi(suite);
  await byCtl(suite);
  await standby(suite, { env, leader: second });
}

async function byPage(suite: Suite, controller: ControllerProcess): Promise<ControllerProcess> {
  const { browser, folder, place, url } = suite;
  await place.dispatch("first");
  await standing(url, { running: SLOTS, waiting: 5 });
  const context = await browser.newContext(LIGHT);
  const page = await openPage(context, `${url}/${POD}`, { quiet: true });
  await page.waitForSelector(".is-live", PATIENCE);
  let operation = "";
  const goneAt = await labelled(place, { label: "pod", there: false }, async () => {
    operation = await take(page, "Drain", async () => {
      await page.locator("details[open] input[name=minutes]").fill("30");
    });
  });
  const id = decodeURIComponent(operation.split("/").at(-1) ?? "");
  const drained = () => read<OperationView>(url, `operations/${id}`);
  quick("page: the label is gone at Gitea", goneAt - Date.parse((await drained()).startedAt));
  await page.getByText("0 of 15").first().waitFor(PATIENCE);
  const late = await place.dispatch("late-x");
  await page.goto(`${url}/${POD}`);
  await page.getByText("Draining").first().waitFor(PATIENCE);
  await inspect(page, folder, "real-backend-draining");
  await page.goto(operation);
  await page.waitForSelector(".is-live", PATIENCE);
  await place.open(...keys("a", 1, 4));
  await page.getByText("4 of 15").first().waitFor(PATIENCE);
  check("page: the progress counts by itself", true);
  await standing(url, { running: SLOTS, waiting: 1 });
  check("page: stored jobs go on during the drain", true);

  const successor = await killedInTheMiddle(suite, { page, controller, drained });

  await place.open(...keys("a", 5, 8));
  await page.getByText("8 of 15").first().waitFor(PATIENCE);
  check("page: it counts on after the controller was killed", true);
  check(
    "page: a job that came during the drain waits at Gitea",
    (await place.jobs(late))[0]?.status === "waiting",
  );
  await inspect(page, folder, "real-operation-drain");
  let undo = "";
  const backAt = await labelled(place, { label: "pod", there: true }, async () => {
    undo = await take(page, "Undo the drain");
  });
  const undone = await read<OperationView>(url, `operations/${undo.split("/").at(-1)}`);
  quick("page: undo at half time brings the label back", backAt - Date.parse(undone.startedAt));
  await fetched(suite, late, { by: "page", since: Date.parse(undone.startedAt) });
  check("page: the drain is undone", (await drained()).state === "undone");
  await context.close();
  return successor;
}

/** SIGKILL, and a start while NATS is away; nothing is offered to Gitea all the while. */
async function killedInTheMiddle(
  { place, nats, url, start, folder }: Suite,
  { page, controller, drained }: {
    readonly page: Page;
    readonly controller: ControllerProcess;
    readonly drained: () => Promise<OperationView>;
  },
): Promise<ControllerProcess> {
  const before = await drained();
  await controller.end("SIGKILL");
  await nats.stop();
  let offered = 0;
  const watch = new AbortController();
  const watching = (async () => {
    while (!watch.signal.aborted) {
      if ((await place.labels()).includes("pod")) offered++;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  })();
  const successor = await start();
  await eventually(async () => {
    const { sources } = await read<StatusView>(url, "status");
    return sources.nats.state === "down";
  }, { what: "the page to say that NATS is away", timeoutMs: 30_000 });
  const late = steadyPage(await page.context().newPage());
  await late.goto(`${url}/`);
  await inspect(late, folder, "real-nats-late");
  await late.close();
  check("killed: a start while NATS is away is shown as such", true);
  await nats.restart();
  await eventually(async () => {
    const { drain } = await read<BackendView>(url, POD);
    return drain !== null;
  }, { what: "the drain to stand again", timeoutMs: 60_000 });
  // Counted again by the new process, of what it has recovered.
  const after = await eventually(async () => {
    const now = await drained();
    return now.progress.done === before.progress.done && now;
  }, { what: "the progress to be counted again", timeoutMs: 20_000 });
  check(
    `killed: the drain goes on where it was (${after.progress.done} of ${after.progress.total})`,
    after.id === before.id && after.state === "running" && after.note === before.note &&
      after.progress.total === before.progress.total,
  );
  await page.locator(".is-live").waitFor(PATIENCE);
  await page.getByText("4 of 15").first().waitFor(PATIENCE);
  check("killed: the open page is live again, with its progress", true);
  await standing(url, { running: SLOTS, waiting: 1 });
  watch.abort();
  await watching;
  check(`killed: the label was not offered meanwhile (${offered} times)`, offered === 0);
  return successor;
}

/** With `hold`: the stored ones stay until the undo. */
async function byApi(suite: Suite): Promise<void> {
  const { place, url } = suite;
  await place.dispatch("second");
  await standing(url, { running: SLOTS, waiting: 5 });
  let operation: OperationView | undefined;
  const goneAt = await labelled(place, { label: "pod", there: false }, async () => {
    operation = await post(url, `${POD}/drain`, { hold: true, deadlineSeconds: 1_800 });
  });
  const { id, startedAt, progress } = operation ?? await nothing();
  quick("API: the label is gone at Gitea", goneAt - Date.parse(startedAt));
  check(
    `API: a drain that holds waits for those that run (${progress.total})`,
    progress.total === 10,
  );
  const late = await place.dispatch("late-y");
  await place.open(...keys("a", 9, 13));
  await progressed(url, id, 5);
  const { items } = await read<{ items: readonly AssignmentView[] }>(
    url,
    "assignments?backend=pod&state=stored",
  );
  check(
    `API: the stored ones stay, and say why (${items.length})`,
    items.length === 5 && items.every(({ reason }) => reason?.code === "backend_cordoned"),
  );
  let undone: OperationView | undefined;
  const backAt = await labelled(place, { label: "pod", there: true }, async () => {
    undone = await post(url, `operations/${id}/undo`);
  });
  const undoneAt = Date.parse((undone ?? await nothing()).startedAt);
  quick("API: undo at half time brings the label back", backAt - undoneAt);
  await fetched(suite, late, { by: "API", since: undoneAt });
  await standing(url, { running: SLOTS, waiting: 1 });
  check("API: the stored ones go on after the undo", true);
}

async function byCtl(suite: Suite): Promise<void> {
  const { browser, folder, place, url } = suite;
  await place.dispatch("third");
  await standing(url, { running: SLOTS, waiting: 5 });
  const tell = async (...args: readonly string[]) => {
    const { code, out, err } = await ctl(url, ...args, "--json");
    if (code !== 0) throw new Error(`ctl ${args.join(" ")}: exit code ${code}\n${out}${err}`);
    return JSON.parse(out) as OperationView;
  };
  let operation: OperationView | undefined;
  const goneAt = await labelled(place, { label: "pod", there: false }, async () => {
    operation = await tell("drain", "pod", "--note", "by ctl");
  });
  const { id, startedAt } = operation ?? await nothing();
  quick("ctl: the label is gone at Gitea", goneAt - Date.parse(startedAt));
  const late = await place.dispatch("late-z");
  await place.open(...keys("a", 14, 15), "x1", ...keys("b", 1, 5));
  await progressed(url, id, 8);
  let undone: OperationView | undefined;
  const backAt = await labelled(place, { label: "pod", there: true }, async () => {
    undone = await tell("undo", id, "--note", "by ctl");
  });
  const undoneAt = Date.parse((undone ?? await nothing()).startedAt);
  quick("ctl: undo at half time brings the label back", backAt - undoneAt);
  await fetched(suite, late, { by: "ctl", since: undoneAt });

  const context = await browser.newContext(LIGHT);
  const page = await openPage(context, `${url}/${POD}`);
  await page.waitForSelector(".is-live", PATIENCE);
  await standing(url, { running: 8, waiting: 0 });
  const waited = ctl(url, "drain", "pod", "--note", "to the end", "--wait", "--json");
  await page.getByText("Draining").first().waitFor(PATIENCE);
  await place.open(...keys("b", 6, 7), ...keys("c", 1, 4), "y1", "z1");
  const { code, out } = await waited;
  const { state, progress } = JSON.parse(out) as OperationView;
  check(
    `ctl: --wait counts to the end (${progress.done} of ${progress.total}), exit code ${code}`,
    code === 0 && state === "done" && progress.done === progress.total && progress.total === 8,
  );
  const { drain, used } = await read<BackendView>(url, POD);
  check("ctl: nothing is left, and it stays drained", drain?.remaining === 0 && used === 0);
  await page.goto(`${url}/${POD}`);
  await inspect(page, folder, "real-backend-drained");
  const resumedAt = await labelled(place, { label: "pod", there: true }, async () => {
    undone = await tell("resume", "pod", "--note", "by ctl");
  });
  quick(
    "ctl: resume brings the label back",
    resumedAt - Date.parse((undone ?? await nothing()).startedAt),
  );
  const wrong = await ctl(url, "undo", id, "--note", "again");
  check(
    `ctl: what does not fit is refused with exit code 3 (${wrong.err.trim()})`,
    wrong.code === 3,
  );
  await context.close();
}

function quick(what: string, ms: number): void {
  check(`${what} after ${ms} ms < ${LABEL_MS} ms`, ms < LABEL_MS);
}

async function standing(
  url: string,
  { running, waiting }: { readonly running: number; readonly waiting: number },
): Promise<void> {
  await eventually(async () => {
    const now = await read<BackendView>(url, POD);
    return now.running === running && now.waiting === waiting;
  }, {
    what: `${running} running and ${waiting} stored jobs`,
    timeoutMs: 90_000,
    everyMs: 100,
  });
}

async function progressed(url: string, id: string, done: number): Promise<void> {
  await eventually(async () => {
    const { progress } = await read<OperationView>(url, `operations/${id}`);
    return progress.done === done;
  }, { what: `${done} to be done of "${id}"`, timeoutMs: 60_000, everyMs: 50 });
}

/** Gitea says `running` as soon as a job is handed out. */
async function fetched(
  { place }: Suite,
  run: number,
  { by, since }: { readonly by: string; readonly since: number },
): Promise<void> {
  const at = await eventually(
    async () => (await place.jobs(run))[0]?.status === "running" && Date.now(),
    { what: "the job that waited at Gitea to be fetched", timeoutMs: 30_000, everyMs: 25 },
  );
  check(
    `${by}: what waited at Gitea is fetched ${at - since} ms after the undo < ${FETCH_MS} ms`,
    at - since < FETCH_MS,
  );
}

function nothing(): Promise<never> {
  return Promise.reject(new Error("No operation came of it"));
}
