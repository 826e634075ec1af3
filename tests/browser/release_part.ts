import type { Browser, BrowserContext } from "playwright-core";
import { connectNats } from "../../clients/nats/connection.ts";
import { createQueue } from "../../clients/nats/queue.ts";
import { enActing } from "../../components/i18n/en_acting.ts";
import type { ReleaseTier } from "../../controller/actions/action_kinds.ts";
import type { ReleasePreview } from "../../controller/actions/release_preview.ts";
import type {
  AssignmentView,
  AuditView,
  BackendView,
  ExecutorView,
  OperationView,
} from "../../controller/views/views.ts";
import { createReport } from "../e2e/report.ts";
import { startCutProxy } from "../support/cut_proxy.ts";
import { eventually } from "../support/eventually.ts";
import { DEPS, NAMES } from "../support/nats_world.ts";
import { startVmController } from "../vm/controller.ts";
import { startPlatform } from "../vm/platform.ts";
import { openSandboxObjects } from "../vm/sandbox_objects.ts";
import { type Stage, startStage } from "../vm/stage.ts";
import { PATIENCE, post, read } from "./forms.ts";
import { inspect, LIGHT } from "./looks.ts";
import { strangers } from "./stranger_part.ts";
import { check, openPage, say } from "./support.ts";

const TIERS = ["graceful", "forced", "forget"] as const;
/** In which state a job is when it is given up; `down`: it runs, and its backend is away. */
const CASES = ["waits", "starts", "runs", "down"] as const;
type Case = (typeof CASES)[number];
const SLOTS = 9;
const VM = "backends/vm";
/** Gitea has an end that comes at once, and a slot that is given back at once is free, within this. */
const AT_ONCE_MS = 5_000;
const END_MS = 60_000;
/** One that has ended, and whose gate's goodbye was told to a controller that is dead, stays for a minute. */
const LINGER_MS = 150_000;

/** A job, and what belongs to it. */
interface Held {
  readonly of: Case;
  readonly tier: ReleaseTier;
  readonly run: number;
  readonly view: AssignmentView;
  /** Its sandbox; null while it has none. */
  readonly uid: string | null;
}

/** What there is of a job now. */
interface Facts {
  readonly slot: boolean;
  readonly executor: boolean;
  readonly entry: boolean;
  readonly message: boolean;
  readonly gitea: string;
}

/** What the steps of this part share. */
interface Suite {
  readonly browser: Browser;
  readonly folder: string;
  readonly stage: Stage;
  readonly url: string;
  facts(held: Held): Promise<Facts>;
  /** The same without what asking SPIRE costs: its entry counts as gone. */
  quickFacts(held: Held): Promise<Facts>;
}

/**
 * A job that waits, one whose start never comes, one that runs and one whose backend is away, each given
 * up in each tier on the page: on real Gitea, NATS, SPIRE and opensandbox-server, the guests with the
 * official runner. What becomes of slot, executor, identity entry, message and job is what the page said.
 */
export async function release(browser: Browser, folder: string): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const { signal } = new AbortController();
  const stage = stack.use(await startStage({ report: createReport(say), signal }));
  const { hostname, port } = new URL(stage.peers.opensandbox.url);
  const proxy = stack.use(startCutProxy({ hostname, port: Number(port) }));
  const env = { OPENSANDBOX_API: `http://127.0.0.1:${proxy.port}`, VM_CAPACITY: "3" };
  const controller = await startVmController(stage, env);
  stack.use(controller);
  const suite = createSuite({ browser, folder, stage }, stack);

  // The waiting ones are given up before there are slots for them.
  const held = await holdAll(suite, stack);
  const contexts = {
    scripted: await browser.newContext(LIGHT),
    plain: await browser.newContext({ ...LIGHT, javaScriptEnabled: false }),
  };
  for (const one of held.filter(({ of }) => of === "starts")) {
    await giveUp(suite, contexts.plain, one);
  }
  for (const one of held.filter(({ of }) => of === "runs")) {
    await giveUp(suite, contexts.scripted, one);
  }
  proxy.cut = true;
  const down = held.filter((one) => one.of === "down");
  for (const one of down) await giveUp(suite, contexts.scripted, one);

  await controller.process.kill();
  const next = startVmController(stage, env);
  // Whatever becomes of the checks: it must not outlive them.
  stack.defer(async () => await (await next.catch(() => undefined))?.[Symbol.asyncDispose]());
  await forgottenStaysAway(suite, down, { next, heal: () => proxy.cut = false });
  await audited(suite, held);
  await goneAtLast(suite, down);
  await contexts.scripted.close();
  await contexts.plain.close();
  await strangers(suite);
  await stepDown(suite);
}

function createSuite(
  base: Pick<Suite, "browser" | "folder" | "stage">,
  stack: AsyncDisposableStack,
): Suite {
  const { peers, gitea, repository, signal } = base.stage;
  const url = `http://127.0.0.1:${peers.port(2)}`;
  const objects = openSandboxObjects(peers);
  const connection = stack.use(connectNats({
    servers: [peers.nats.url],
    ...{ user: null, password: null, credsFile: null, caFile: null },
  }, DEPS));
  const queue = createQueue(connection, { ...NAMES, ...DEPS });
  const quickFacts: Suite["quickFacts"] = async ({ view, uid, run }) => {
    const [backend, sandboxes, messages, { jobs }] = await Promise.all([
      read<BackendView>(url, VM),
      objects.list(),
      queue.list("vm", { fromSequence: 1, limit: 100 }, { signal }),
      gitea.run(repository, run),
    ]);
    return {
      slot: backend.slots.some(({ assignmentId }) => assignmentId === view.id),
      executor: sandboxes.some(({ name }) => name === uid),
      entry: false,
      message: messages.some(({ id }) => id === view.id),
      gitea: jobs[0]?.status ?? "absent",
    };
  };
  return {
    ...base,
    url,
    quickFacts,
    async facts(held) {
      const { spiffeId } = held.view;
      const entries = await peers.spire.server(["entry", "show", "-spiffeID", spiffeId]);
      return { ...await quickFacts(held), entry: entries.includes(spiffeId) };
    },
  };
}

/** Brings twelve jobs into their states: three of each case, one for each tier. */
async function holdAll(suite: Suite, stack: AsyncDisposableStack): Promise<Held[]> {
  const { stage, url } = suite;
  const { gitea, repository } = stage;
  const names = CASES.flatMap((of) => TIERS.map((tier) => ({ of, tier, name: `${of}-${tier}` })));
  await gitea.commit(
    repository,
    names.map(({ name }) => ({
      path: `.gitea/workflows/${name}.yaml`,
      content: JSON.stringify({
        on: "workflow_dispatch",
        jobs: {
          [name]: {
            "runs-on": ["self-hosted", "vm"],
            steps: [{ run: "for i in $(seq 1 600); do sleep 1; done" }],
          },
        },
      }),
    })),
  );
  const held: Held[] = [];
  const start = async (of: Case, wanted: (view: AssignmentView) => boolean) => {
    const runs = new Map<string, number>();
    for (const one of names.filter((one) => one.of === of)) {
      runs.set(one.name, await gitea.dispatch(repository, `${one.name}.yaml`));
    }
    for (const { tier, name } of names.filter((one) => one.of === of)) {
      const view = await eventually(async () => {
        const { items } = await read<{ items: readonly AssignmentView[] }>(
          url,
          "assignments?limit=100",
        );
        return items.find((item) => item.job === name && wanted(item));
      }, { what: `the job "${name}" to be in its state`, timeoutMs: 90_000, everyMs: 100 });
      const { items } = await read<{ items: readonly ExecutorView[] }>(url, "executors?limit=100");
      const uid = items.find(({ assignmentId }) => assignmentId === view.id)?.uid ?? null;
      held.push({ of, tier, view, uid, run: runs.get(name) ?? 0 });
    }
  };
  // Nobody starts their guests: the platform comes later, and is told to leave them alone.
  await start("starts", ({ state, executor }) => executor !== null && state === "ready");
  await start("waits", ({ state }) => state === "stored");
  const waiting = held.filter(({ of }) => of === "waits");
  const context = await suite.browser.newContext(LIGHT);
  for (const one of waiting) await giveUp(suite, context, one);
  await context.close();
  const leave = new Set(held.flatMap(({ uid }) => uid ?? []));
  stack.use(startPlatform(stage, { leave }));
  await post(url, `${VM}/capacity`, { capacity: SLOTS });
  await start("runs", ({ state }) => state === "running");
  await start("down", ({ state }) => state === "running");
  return held;
}

/** Reads the page, does what it offers, and compares what comes of it with what the page said. */
async function giveUp(suite: Suite, context: BrowserContext, held: Held): Promise<void> {
  const { url, folder, stage: { gitea, repository } } = suite;
  const { of, tier, view: { id }, run } = held;
  const name = `release of one that ${of === "down" ? "runs, its backend away," : of} (${tier})`;
  const before = await suite.facts(held);
  const page = await openPage(context, `${url}/assignments/${id}`);
  await page.getByRole("link", { name: "Release…" }).click();
  const said = await read<ReleasePreview>(url, `assignments/${id}/preview?tier=${tier}`);
  const section = page.locator(`section.tier.${tier}`);
  const lines = await section.locator(".fate li").allInnerTexts();
  const expected = linesOf(said);
  check(`${name}: the page says it: ${lines.join(" ")}`, lines.join("|") === expected.join("|"));
  const holds = { waits: false, starts: true, runs: true, down: true }[of];
  check(
    `${name}: before, it has slot, executor, entry and message as the page counts them`,
    before.slot === holds && before.executor === holds &&
      said.slot === "none" === !holds && said.executor.fate === "none" === !holds &&
      before.message === (said.message === "removed") &&
      before.entry === (of === "runs" || of === "down") && before.gitea === "running",
  );
  if (tier === "graceful") {
    await page.screenshot({ path: `${folder}/real-release-${of}.png`, fullPage: true });
  }
  const note = `${of} ${tier}`;
  await section.locator("input[name=note]").fill(note);
  if (tier === "forget") await section.locator("input[name=confirm]").fill(id);
  await section.locator("button[type=submit]").click();
  await page.waitForURL(/\/operations\//, PATIENCE);
  const operation = decodeURIComponent(page.url().split("/").at(-1) ?? "");
  const state = () => read<OperationView>(url, `operations/${operation}`);

  const { gitea: end } = said;
  const result = end.when === "at_once" ? end.result : "cancelled";
  await eventually(async () => (await gitea.run(repository, run)).jobs[0]?.status === result, {
    what: `the job of "${note}" to be ${result} at Gitea`,
    timeoutMs: end.when === "at_once" ? AT_ONCE_MS : END_MS,
    everyMs: 100,
  });
  const [job] = (await gitea.run(repository, run)).jobs;
  const logged = await eventually(
    async () => (await gitea.log(repository, job?.id ?? 0)).includes(note),
    {
      what: "the note in the job's log",
      timeoutMs: 10_000,
      everyMs: 100,
    },
  ).catch(() => false);
  check(`${name}: the job is ${result} at Gitea, with the note in its log`, logged);
  if (said.slot === "freed_at_once") {
    await until(suite, held, { what: "its slot to be free", ms: AT_ONCE_MS }, ({ slot }) => !slot);
    check(`${name}: its slot is free at once`, true);
  }
  if (of === "down") {
    // What ended by itself says so a moment later, and holds no slot; its executor is there all the same.
    const kept = said.slot === "freed_when_executor_gone";
    if (!kept) {
      await until(suite, held, { what: "its slot to be free", ms: END_MS }, ({ slot }) => !slot);
    }
    const now = await suite.facts(held);
    const { state: shown, error } = await state();
    check(
      `${name}: ${JSON.stringify(now)}, the operation is ${shown} (${error ?? "no error"})`,
      now.executor && now.slot === kept && shown === (tier === "forget" ? "done" : "running"),
    );
    await inspect(page, folder, `real-release-down-${tier}`);
  } else {
    await until(suite, held, { what: "nothing to be left", ms: END_MS }, (now) => {
      if (!now.slot && now.executor && said.slot === "freed_when_executor_gone") {
        throw new Error("Its slot is free although its executor is there");
      }
      return !now.slot && !now.executor && !now.entry && !now.message;
    });
    await eventually(async () => (await state()).state === "done", {
      what: "its operation to be done",
      timeoutMs: 20_000,
    });
    check(
      `${name}: slot, executor, identity entry and message are gone, its operation is done`,
      true,
    );
  }
  await page.close();
}

async function until(
  suite: Suite,
  held: Held,
  { what, ms }: { readonly what: string; readonly ms: number },
  holds: (facts: Facts) => boolean,
): Promise<void> {
  let last: Facts | undefined;
  await eventually(
    async () => holds(last = await suite.quickFacts(held)) && holds(last = await suite.facts(held)),
    {
      what,
      timeoutMs: ms,
      everyMs: 200,
    },
  ).catch((cause) => {
    throw new Error(`${held.of} ${held.tier}: ${JSON.stringify(last)}`, { cause });
  });
}

/** The page's sentences for a preview. */
function linesOf({ gitea, slot, executor, identity, message }: ReleasePreview): string[] {
  const { release: text } = enActing;
  return [
    text.gitea[gitea.when].replace("{result}", gitea.result ?? ""),
    text.slot[slot],
    text.executor[executor.fate].replace("{name}", executor.name ?? text.unnamed),
    ...identity === "none" ? [] : [text.identity],
    text.message[message],
  ];
}

/** The controller was killed while the backend was away: what was forgotten is remembered as such. */
async function forgottenStaysAway(
  suite: Suite,
  down: readonly Held[],
  { next, heal }: { readonly next: Promise<unknown>; heal(): void },
): Promise<void> {
  const { url, browser, folder } = suite;
  const forgotten = down.filter(({ tier }) => tier === "forget");
  const up = await eventually(async () => await read<BackendView>(url, VM), {
    what: "the page after the restart",
    timeoutMs: 60_000,
    everyMs: 100,
  });
  check("forgotten: it holds no slot before its backend answers", up.slots.length === 0);
  const guests = await openSandboxObjects(suite.stage.peers).list();
  heal();
  await next;
  for (const one of forgotten) {
    await until(suite, one, { what: "the forgotten one to go", ms: END_MS }, (now) => {
      if (now.slot) throw new Error("It has a slot again");
      return !now.executor && !now.entry && !now.message && now.gitea === "failure";
    });
  }
  check("forgotten: it does not come back at recovery, and is deleted when it is seen", true);
  const after = await openSandboxObjects(suite.stage.peers).list();
  const made = after.filter(({ name }) => !guests.some((guest) => guest.name === name));
  check(`forgotten: none of them is run again (${made.length} new executors)`, made.length === 0);
  const context = await browser.newContext(LIGHT);
  const page = await openPage(context, `${url}/executors`);
  await page.waitForSelector(".is-live", PATIENCE);
  await inspect(page, folder, "real-executors-none");
  await context.close();
}

/** The others' slots come back when the backend answers again: that one has ended is found out anew. */
async function goneAtLast(suite: Suite, down: readonly Held[]): Promise<void> {
  for (const one of down.filter(({ tier }) => tier !== "forget")) {
    await until(
      suite,
      one,
      { what: "nothing to be left", ms: LINGER_MS },
      (now) => !now.slot && !now.executor && !now.entry,
    );
  }
  check("backend back: the others give their slots back, and nothing is left", true);
}

/** One row each, with who, what, target, before, after, note and result. */
async function audited({ url, browser, folder }: Suite, held: readonly Held[]): Promise<void> {
  const { items } = await read<{ items: readonly AuditView[] }>(url, "audit?limit=100");
  for (const { of, tier, view } of held) {
    const rows = items.filter(({ action, target }) => action === "release" && target === view.id);
    const [row] = rows;
    check(
      `audit: ${of} ${tier}: ${row?.actor}, ${JSON.stringify(row?.before)} -> ` +
        `${JSON.stringify(row?.after)}, ${row?.result}`,
      rows.length === 1 && row?.result === "done" && row.note === `${of} ${tier}` &&
        row.actor !== "" && row.requestId !== "" && row.before !== null && row.after !== null,
    );
  }
  const context = await browser.newContext(LIGHT);
  const page = await openPage(context, `${url}/audit?action=release`);
  await page.waitForSelector(".is-live", PATIENCE);
  await inspect(page, folder, "real-audit-release");
  await context.close();
}

/**
 * Another replica takes over when the leader is asked for it. Without a Lease the page does not offer that:
 * whether there is another replica is not known there.
 */
async function stepDown(suite: Suite): Promise<void> {
  const { stage, browser, url } = suite;
  await using stack = new AsyncDisposableStack();
  const at = (index: number) => `127.0.0.1:${stage.peers.port(index)}`;
  const other = `http://${at(5)}`;
  // Its readiness is asked at the first one's port, which is ready: both are up then.
  stack.use(
    await startVmController(stage, {
      STATE_DIR: `${stage.base.stateFolder}-2`,
      ADMIN_LISTEN: at(5),
      HEALTH_LISTEN: at(6),
      RUNNER_FACADE_LISTEN: at(4),
      RUNNER_FACADE_URL: `https://${at(4)}`,
    }),
  );
  const leads = async (base: string) =>
    (await read<{ readonly leading: boolean }>(base, "leader")).leading;
  await eventually(async () => !await leads(other), {
    what: "the second replica to stand by",
    timeoutMs: 60_000,
    everyMs: 100,
  });
  const context = await browser.newContext({ ...LIGHT, javaScriptEnabled: false });
  const page = await openPage(context, `${url}/leader`);
  check(
    "step down: without a Lease the page says why it does not offer it",
    await page.locator("details.step").count() === 0 &&
      (await page.locator("main").innerText()).includes("Without an elector"),
  );
  await context.close();
  const since = performance.now();
  await post(url, "leader/step-down", { note: "by an operator" });
  await eventually(() => leads(other), {
    what: "the second replica to lead",
    timeoutMs: 60_000,
    everyMs: 100,
  });
  const took = ((performance.now() - since) / 1_000).toFixed(1);
  check(`step down: another replica leads ${took} s after the leader was asked`, true);
  const { items } = await read<{ items: readonly AuditView[] }>(other, "audit?action=step-down");
  check("step down: the audit has it", items[0]?.note === "by an operator");
}
