import assert from "node:assert/strict";
import type { BackendView } from "../../controller/views/views.ts";
import { eventually } from "../support/eventually.ts";
import { startVmController } from "./controller.ts";
import { AFTER, BEFORE, keepAlive, LIFETIME_S, roleOf, TOLD_MS } from "./ending_cases.ts";
import { type Job, type JobWorld, startJob } from "./job.ts";
import { startPlatform } from "./platform.ts";
import { playJob } from "./player.ts";
import { openSandboxObjects } from "./sandbox_objects.ts";
import type { Stage } from "./stage.ts";
import { AFTER_CLAIM, BEFORE_CLAIM } from "./workflows.ts";

/** From the job's end until its slot and its sandbox are gone. */
const LEFT_MS = 10_000;

/** What the step has printed: its script stands in the log, too. */
const BEGUN: RegExp = /^\S+ it has begun$/m;

interface Bounds {
  readonly fromMs: number;
  readonly toMs: number;
}

interface World extends JobWorld {
  /** Keys of jobs whose second sandbox is not started yet. */
  readonly held: Set<string>;
}

/** Sandboxes that end before their job is claimed, and under a running job, all at a time. */
export async function checkEndings(stage: Stage): Promise<void> {
  const { report } = stage;
  const held = new Set<string>(BEFORE_CLAIM);
  await using platform = startPlatform(stage, {
    roleOf: (guest) => roleOf(guest, held),
    onGuest: (guest) => keepAlive(stage, guest),
  });
  await using controller = await startVmController(stage, {
    VM_CAPACITY: String(BEFORE_CLAIM.length + AFTER_CLAIM.length),
    VM_TIMEOUT_SECONDS: String(LIFETIME_S),
  });
  const world: World = { stage, platform, controller, held };
  // Those that take longest, and those whose time runs, come first.
  const after = new Map<string, Job>();
  for (const key of AFTER_CLAIM) after.set(key, await startJob(world, key));
  const before = new Map<string, Job>();
  for (const key of BEFORE_CLAIM) before.set(key, await startJob(world, key));
  await Promise.all([
    ...AFTER_CLAIM.map((key) =>
      report.check(`under a running job: ${key.slice("after-".length)}`, async () => {
        const job = after.get(key) ?? assert.fail(key);
        return await checkAfter(world, job, AFTER[key]);
      })
    ),
    ...BEFORE_CLAIM.map((key) =>
      report.check(`before the claim: ${key.slice("before-".length)}`, async () => {
        const job = before.get(key) ?? assert.fail(key);
        // One whose check has failed must not hold its slot.
        return await checkBefore(world, job, { ...BEFORE[key], key }).finally(() =>
          held.delete(key)
        );
      })
    ),
  ]);
  await report.check("nothing is left of the endings, and a job runs", async () => {
    await playJob(world, "quick.yaml");
    return await nothingLeft(world);
  });
}

async function checkBefore(
  { stage, held }: World,
  job: Job,
  { key, act, from, code, text, row = text, fromMs, toMs }: typeof BEFORE["before-deleted"] & {
    readonly key: string;
  },
): Promise<string> {
  const first = await job.guest(1);
  await eventually(() => first.boundAt !== null, { what: "its identity", timeoutMs: 60_000 });
  await act?.(stage, first);
  const seen = await eventually(async () => {
    const { reason } = await job.view();
    return reason?.code === code && text.test(reason.detail) && reason.detail;
  }, {
    what: `the reason ${code} of "${key}"`,
    timeoutMs: toMs + LIFETIME_S * 1_000 + TOLD_MS,
    everyMs: 250,
  });
  const second = await job.guest(2, toMs);
  const since = from(first) ?? assert.fail("the first sandbox has not ended");
  const figure = within(second.seenAt - since, { fromMs, toMs });
  // It is told while the next one starts, with the next row: one a minute.
  await job.logged(row, 90_000);
  held.delete(key);
  const { status } = await job.ended(120_000);
  assert.equal(status, "success", await job.log());
  assert.equal(job.guests().length, 2, "sandboxes");
  const { events, failures } = await job.view();
  assert.equal(events.filter(({ event }) => event === "runner_claimed").length, 1, "claims");
  assert.equal(failures, 1);
  await job.slotFree(LEFT_MS);
  return `${code}, "${seen.slice(0, 90)}"; another ${figure}; then success`;
}

async function checkAfter(
  world: World,
  job: Job,
  { act, text, fromMs, toMs }: typeof AFTER["after-expired"],
): Promise<string> {
  const guest = await job.guest(1);
  await job.logged(BEGUN, LIFETIME_S * 1_000);
  assert.equal(guest.goneAt, null, "its sandbox while its job runs");
  let since = performance.now();
  if (act !== undefined) await act(world, guest);
  else {
    const what = "its sandbox to expire";
    since = await eventually(() => guest.goneAt ?? undefined, { what, timeoutMs: 90_000 });
  }
  const { id, status } = await job.ended(toMs + TOLD_MS);
  const endedAt = performance.now();
  const log = await job.log();
  const end = log.trimEnd().split("\n").slice(-4).join("\n");
  assert.equal(status, "failure", end);
  const figure = within(endedAt - since, { fromMs, toMs });
  const why = log.trimEnd().split("\n").at(-1) ?? "";
  assert.match(why, /gitea-dynamic-runner: /);
  assert.match(why, text);
  assert.equal(log.match(new RegExp(BEGUN, "gm"))?.length, 1, "runs");
  const { gitea, repository } = world.stage;
  const steps = await gitea.steps(repository, job.run, id);
  assert.ok(steps.every((step) => !/running|waiting/.test(step.status)), JSON.stringify(steps));
  await job.slotFree(LEFT_MS);
  const leftMs = performance.now() - endedAt;
  const { reason, result, events } = await job.view();
  assert.equal(reason?.code, "executor_lost");
  assert.match(reason.detail, text);
  assert.equal(result, "failure");
  const count = (name: string) => events.filter(({ event }) => event === name).length;
  assert.deepEqual([count("executor_created"), count("runner_claimed")], [1, 1], "made, claimed");
  assert.equal(job.guests().length, 1, "sandboxes");
  return `failure ${figure}: executor_lost, "${reason.detail.slice(0, 110)}"; slot and sandbox ${
    (leftMs / 1_000).toFixed(1)
  } s later, bound ${LEFT_MS / 1_000} s`;
}

async function nothingLeft({ stage, platform, controller }: World): Promise<string> {
  const { peers, repository } = stage;
  await eventually(async () => {
    const { used } = await controller.get("/api/v1/backends/vm") as BackendView;
    return used === 0;
  }, { what: "all slots to be free", timeoutMs: LEFT_MS, everyMs: 100 });
  const objects = await openSandboxObjects(peers).list();
  assert.deepEqual(objects.map(({ name }) => name), [], "sandboxes");
  assert.equal(platform.entries(), 0, "entries");
  const shown = await peers.spire.server(["entry", "show"]);
  assert.doesNotMatch(shown, new RegExp(`/ci/${repository}/`), "entries of SPIRE");
  assert.deepEqual(platform.faults, []);
  return "sandboxes left: 0, entries left: 0, slots in use: 0";
}

function within(ms: number, { fromMs, toMs }: Bounds): string {
  const text = `after ${(ms / 1_000).toFixed(1)} s, bound ${toMs / 1_000} s`;
  assert.ok(ms <= toMs, text);
  assert.ok(ms >= fromMs, `${text}, not before ${fromMs / 1_000} s`);
  return text;
}
