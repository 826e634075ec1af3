import assert from "node:assert/strict";
import { connectNats } from "../../clients/nats/connection.ts";
import { createRecords } from "../../clients/nats/records.ts";
import { createLifecycle } from "../../clients/opensandbox/lifecycle.ts";
import type { BackendView, ExecutorView, LeaderView, Page } from "../../controller/views/views.ts";
import { systemClock } from "../../lib/clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { Secret } from "../../lib/secret.ts";
import { eventually } from "../support/eventually.ts";
import { startVmController } from "./controller.ts";
import { startPlatform } from "./platform.ts";
import { createMaker, type Flaw, FLAWS, type Made, recordOf } from "./recovery_fixture.ts";
import { runEnd } from "./run_end.ts";
import type { Stage } from "./stage.ts";

const SANDBOXES = 250;
const AT_ONCE = 8;
const PATIENCE_MS = 90_000;

const KEPT = SANDBOXES - FLAWS.length;

/**
 * Start-up with 250 running sandboxes, made by the VM backend, each with its record and its claim; four of
 * them cannot be believed. The start goes on: a new job runs.
 */
export async function checkRecovery(stage: Stage): Promise<void> {
  const { peers, report, gitea, repository, signal } = stage;
  const call = { signal };
  const deps = { logger: silentLogger, clock: systemClock };
  const epoch = await leadOnce(stage);
  await using stack = new AsyncDisposableStack();
  const { url, apiKey } = peers.opensandbox;
  const api = stack.use(createLifecycle({ url, apiKey: new Secret(apiKey), clock: systemClock }));
  const connection = stack.use(connectNats({
    servers: [peers.nats.url],
    user: null,
    password: null,
    credsFile: null,
    caFile: null,
  }, deps));
  const records = stack.use(createRecords(connection, deps));
  const made: Made[] = [];
  stack.defer(async () => {
    for (const { id } of await api.list({}, call)) await api.delete(id, call);
    for (const { info } of made) await records.delete(info.taskId, call);
  });
  const prepared = await report.attempt(`making ${SANDBOXES} sandboxes`, async () => {
    const maker = await createMaker(stage, api);
    const tasks = Array.from({ length: SANDBOXES }, (_, index) => index);
    for (let from = 0; from < SANDBOXES; from += AT_ONCE) {
      await Promise.all(
        tasks.slice(from, from + AT_ONCE).map(async (index) => {
          const one = await maker.make(index, FLAWS[index]);
          made.push(one);
          if (one.flaw === "another instance") return;
          await records.create(one.info.taskId, recordOf(one, epoch), call);
        }),
      );
    }
  });
  if (!prepared) return;
  await using platform = startPlatform(stage, { leave: new Set(made.map(({ uid }) => uid)) });
  const startedAt = performance.now();
  const run = await gitea.dispatch(repository, "quick.yaml");
  await using controller = await startVmController(stage, {
    VM_CAPACITY: String(KEPT + 2 + 1),
  });
  const line = await eventually(
    async () => (await controller.log()).find(({ msg }) => msg === "backend recovered"),
    {
      what: "the end of the recovery",
      timeoutMs: PATIENCE_MS,
      everyMs: 100,
    },
  );
  const readyMs = Math.round(performance.now() - startedAt);
  await report.check(`${SANDBOXES} sandboxes to recover: ${KEPT} are restored`, async () => {
    assert.equal(line["executors"], KEPT, JSON.stringify(line));
    const executors = await allExecutors(controller.get);
    const ours = executors.filter(({ ownership }) => ownership === "ours");
    const recovered = ours.filter((one) => one.recovered?.proof === "record");
    assert.equal(recovered.length, KEPT, "recovered by their records");
    assert.ok(recovered.every(({ claimed }) => claimed), "their claims");
    return `restored ${recovered.length}; recovered ${readyMs} ms after the start`;
  });
  await report.check("two are unknown and keep a slot, two are foreign", async () => {
    const executors = await allExecutors(controller.get);
    const of = (flaw: Flaw) => {
      const { uid } = made.find((one) => one.flaw === flaw) ?? assert.fail(flaw);
      return executors.find((one) => one.uid === uid) ?? assert.fail(`${flaw} is not shown`);
    };
    const shown = FLAWS.map((flaw) => [flaw, of(flaw).ownership, of(flaw).why] as const);
    assert.deepEqual(shown.map(([, ownership]) => ownership), [
      "unknown",
      "unknown",
      "foreign",
      "foreign",
    ], JSON.stringify(shown));
    assert.equal(of("missing chunk").why, "sandbox annotation metadata chunks are incomplete");
    const backend = await controller.get("/api/v1/backends/vm") as BackendView;
    assert.equal(backend.unknown, 2);
    return shown.map(([flaw, ownership, why]) => `${flaw}: ${ownership}, ${why}`).join("; ");
  });
  await report.check("the start goes on: a job takes the one slot that is left", async () => {
    const job = await runEnd(stage, run, PATIENCE_MS);
    assert.equal(job.status, "success", await gitea.log(repository, job.id));
    assert.equal(platform.guests().length, 1);
    assert.deepEqual(platform.faults, []);
    const { capacity } = await eventually(async () => {
      const now = await controller.get("/api/v1/backends/vm") as BackendView;
      return now.used === KEPT && now.free === 1 && now;
    }, {
      // The record of the unsigned one is given up, and gone with the next list at the latest.
      what: "its slot to be free again, and no other",
      timeoutMs: PATIENCE_MS,
      everyMs: 200,
    });
    return `success; of ${capacity} slots ${KEPT} are used, 2 kept by unknown ones, 1 is free`;
  });
  await report.check("none of the four is touched", async () => {
    for (const { uid, flaw } of made) {
      if (flaw !== undefined) assert.ok(await api.get(uid, call) !== undefined, flaw);
    }
    return "all four are there";
  });
}

/** Makes the streams, and resolves to the epoch in which records can be written until the next start. */
async function leadOnce(stage: Stage): Promise<number> {
  await using first = await startVmController(stage);
  const { epoch } = await first.get("/api/v1/leader") as LeaderView;
  assert.ok(epoch !== null, "an epoch");
  return epoch;
}

async function allExecutors(get: (path: string) => Promise<unknown>): Promise<ExecutorView[]> {
  const all: ExecutorView[] = [];
  let cursor: string | null = null;
  do {
    const query: string = cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`;
    const page = await get(`/api/v1/executors?backend=vm&limit=100${query}`) as Page<ExecutorView>;
    all.push(...page.items);
    cursor = page.nextCursor;
  } while (cursor !== null);
  return all;
}
