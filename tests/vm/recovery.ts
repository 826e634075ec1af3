import assert from "node:assert/strict";
import { createVmBackend } from "../../backends/vm/vm_backend.ts";
import { connectNats } from "../../clients/nats/connection.ts";
import { createRecords } from "../../clients/nats/records.ts";
import { createLifecycle } from "../../clients/opensandbox/lifecycle.ts";
import type { Backend } from "../../controller/backend.ts";
import type { AssignmentInfo } from "../../controller/model/assignment_info.ts";
import {
  assignmentIdOf,
  type ExecutorName,
  executorName,
  type Instance,
  instanceOf,
  parseTaskId,
} from "../../controller/model/ids.ts";
import { spiffeIdOf } from "../../controller/model/identity.ts";
import { metadataKeys } from "../../controller/model/metadata.ts";
import type { BackendView, ExecutorView, LeaderView, Page } from "../../controller/views/views.ts";
import { systemClock } from "../../lib/clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { Secret } from "../../lib/secret.ts";
import { createOwnership } from "../../wiring/ownership.ts";
import { eventually } from "../support/eventually.ts";
import { removeMetadata } from "../support/sandbox_metadata.ts";
import { VM_PREFIX, VM_SETTINGS } from "../support/vm_backend_setup.ts";
import { startVmController } from "./controller.ts";
import { startPlatform } from "./platform.ts";
import type { Stage } from "./stage.ts";

const SANDBOXES = 250;
const AT_ONCE = 8;
const JOB = "kept";
const POD_NAMESPACE = "gitea-actions";
/** Far above what this Gitea has given out. */
const FIRST_TASK = 5_000_000;
const PATIENCE_MS = 90_000;

/** What is wrong with the first of them. */
const SPOILT = ["missing chunk", "wrong identity", "unsigned", "another instance"] as const;
type Flaw = typeof SPOILT[number];
const KEPT = SANDBOXES - SPOILT.length;

interface Made {
  readonly name: ExecutorName;
  readonly uid: string;
  readonly info: AssignmentInfo;
  readonly flaw: Flaw | undefined;
}

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
  stack.defer(async () => {
    for (const { id } of await api.list({}, call)) await api.delete(id, call);
    for (const { info } of made) await records.delete(info.taskId, call);
  });
  const made: Made[] = [];
  const prepared = await report.attempt(`making ${SANDBOXES} sandboxes`, async () => {
    const maker = await createMaker(stage, api);
    const tasks = Array.from({ length: SANDBOXES }, (_, index) => index);
    for (let from = 0; from < SANDBOXES; from += AT_ONCE) {
      await Promise.all(
        tasks.slice(from, from + AT_ONCE).map(async (index) => {
          const one = await maker.make(index, SPOILT[index]);
          made.push(one);
          if (one.flaw === "another instance") return;
          await records.create(one.info.taskId, recordOf(one, { repository, epoch }), call);
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
    const shown = SPOILT.map((flaw) => [flaw, of(flaw).ownership, of(flaw).why] as const);
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
    const { jobs: [job] } = await eventually(async () => {
      const view = await gitea.run(repository, run);
      return view.done && view;
    }, { what: `the end of run ${run}`, timeoutMs: PATIENCE_MS, everyMs: 200 });
    assert.ok(job !== undefined);
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

/** Makes sandboxes as the controller of this stage does, or with one thing wrong. */
async function createMaker(
  { peers, base, repository, signal }: Stage,
  api: ReturnType<typeof createLifecycle>,
): Promise<{ make(index: number, flaw: Flaw | undefined): Promise<Made> }> {
  const call = { signal };
  const text = async (file: string) => (await Deno.readTextFile(file)).trim();
  const uuid = await text(`${base.registration}/GITEA_RUNNER_UUID`);
  const key = new Secret(await text(base.capabilityKeyFile));
  const { trustDomain } = peers.spire;
  const keys = metadataKeys(VM_PREFIX).annotations;
  const of = (instance: Instance) => ({
    instance,
    ownership: createOwnership({ keys: [key], prefix: VM_PREFIX, instance, trustDomain }),
    backend: createVmBackend({ ...VM_SETTINGS, api, instance }) as Backend,
  });
  const ours = of(await instanceOf(uuid, POD_NAMESPACE));
  const others = of(await instanceOf(uuid, "another-namespace"));
  return {
    async make(index, flaw) {
      const { instance, ownership, backend } = flaw === "another instance" ? others : ours;
      const info = assignment(FIRST_TASK + index, { repository, trustDomain });
      const name = executorName(instance, info.id);
      const composed = await ownership.compose(name, info, nonceOf(info));
      const { [keys.signature]: signature = "", ...unsigned } = composed.annotations;
      const annotations = flaw === "unsigned" ? unsigned : {
        ...unsigned,
        [keys.signature]: signature,
        ...flaw === "wrong identity"
          ? { [keys.spiffeId]: `spiffe://${trustDomain}/ci/${repository}/another` }
          : {},
      };
      const executor = await backend.create({
        name,
        metadata: { ...composed, annotations },
        environment: { CI_ASSIGNMENT_ID: info.id },
        assignment: info,
      }, call);
      if (flaw !== "wrong identity") await backend.bindIdentity(executor, info, call);
      if (flaw === "missing chunk") {
        await removeMetadata(peers.opensandbox, executor.uid, `${VM_PREFIX}/annotations-001`);
      }
      return { name, uid: executor.uid, info, flaw };
    },
  };
}

function assignment(
  task: number,
  { repository, trustDomain }: { readonly repository: string; readonly trustDomain: string },
): AssignmentInfo {
  const derived = spiffeIdOf({ repository, job: JOB, fork: false }, trustDomain);
  const taskId = parseTaskId(BigInt(task));
  if (derived.kind === "permanent" || taskId === undefined) throw new RangeError("Make a task");
  return {
    id: assignmentIdOf(taskId),
    taskId,
    backend: "vm",
    identity: derived.identity,
    repository,
    job: JOB,
    runId: null,
    giteaUrl: null,
    serverUrl: null,
  };
}

function nonceOf({ id }: AssignmentInfo): string {
  return `nonce-of-${id}`;
}

function recordOf(
  { name, uid, info, flaw }: Made,
  { repository, epoch }: { readonly repository: string; readonly epoch: number },
) {
  const now = Date.now();
  return {
    backend: "vm" as const,
    repository,
    job: JOB,
    spiffeId: info.identity.spiffeId,
    fork: false,
    runId: null,
    giteaUrl: null,
    serverUrl: null,
    storedAt: now,
    nonce: nonceOf(info),
    // The signature is what proves one whose create had no answer.
    ...flaw === "unsigned" ? { uid: null, claimedBy: null } : {
      uid,
      claimedBy: { executor: name, gate: "0".repeat(32), at: now },
    },
    logOffset: 0,
    steps: [],
    failures: 0,
    parkedUntil: null,
    released: null,
    terminal: null,
    epoch,
  };
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
